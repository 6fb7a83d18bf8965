// The order that is left where messages of a partition run side by side: that of each order key,
// whoever dies, joins, leaves or fails meanwhile.
#include <fmt/format.h>

#include <cstdlib>

#include "group_of_processes.hpp"
#include "ordered_accounts.hpp"
#include "prelude.hpp"

namespace {

constexpr int kPartitions = 4;
constexpr int kAccounts = 24;
/// Messages of each account in a round.
constexpr int kMessages = 20;

/// What happens to the group: PAWL_ORDER_ROUNDS, else few enough for every day.
int rounds() {
  const char* rounds = std::getenv("PAWL_ORDER_ROUNDS");
  return rounds != nullptr ? std::atoi(rounds) : 6;
}

std::string account(int number) {
  return fmt::format("acc-{}", number);
}

/// Of the messages that took effect, those that did not follow the one before of their account.
std::int64_t misplaced(const PaymentsWorld& world) {
  return world.number(
      "SELECT count(*) FROM (SELECT number, lag(number) OVER (PARTITION BY account ORDER BY "
      "position) AS before FROM ordered) o WHERE number <> coalesce(before, 0) + 1");
}

}  // namespace

TEST_CASE("messages of an order key take effect in order, whoever dies, leaves or fails") {
  const int concurrency = GENERATE(1, 4, 64);
  CAPTURE(concurrency);
  PaymentsWorld world(kPartitions);
  prepare_accounts(world);
  world.execute("CREATE SEQUENCE tries");
  // Every thirteenth try fails; a sequence is not rolled back. What comes at the end of a topic's
  // handlers has the concurrency that the topic needs.
  world.use_handler(fmt::format(R"toml(concurrency = {}
sql = [
  "SELECT 1 / (nextval('tries') % 13)",
  "INSERT INTO ordered (account, number) VALUES ({{/account}}, {{/number}}::bigint)",
])toml",
                                concurrency));
  world.set("failures.retry_initial=1ms");
  world.set("failures.max_crashes=100");
  world.set_kafka_options("session_timeout = \"1s\"");
  pawl::test::GroupOfProcesses group(world);
  group.join();
  group.join();
  for (int round = 0; round < rounds(); ++round) {
    for (int i = 0; i < kAccounts; ++i)
      produce(world, account(i), round * kMessages + 1, (round + 1) * kMessages, i % kPartitions);
    world.wait_until_processed(round * kAccounts * kMessages + kAccounts * kMessages / 3);
    switch (round % 3) {
      case 0:
        group.kill_oldest();
        group.join();
        break;
      case 1:
        group.join();
        break;
      default:
        group.leave_oldest();
    }
  }
  world.wait_until_processed(rounds() * kAccounts * kMessages);
  CHECK(misplaced(world) == 0);
  CHECK(world.number("SELECT count(*) FROM ordered") == rounds() * kAccounts * kMessages);
  CHECK(world.number(
            "SELECT count(*) FROM pawl.out_of_order_completions WHERE outcome IS NOT NULL") == 0);
  CHECK(world.number("SELECT sum(applied_count + duplicate_count) FROM "
                     "pawl.processed_kafka_offsets") == rounds() * kAccounts * kMessages);
  group.leave_all();
}
