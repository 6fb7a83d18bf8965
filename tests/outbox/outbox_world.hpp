#pragma once

#include <fmt/format.h>

#include <csignal>
#include <cstdlib>
#include <map>
#include <pqxx/pqxx>
#include <set>
#include <string>

#include "payments_world.hpp"
#include "prelude.hpp"
#include "process_watch.hpp"

namespace pawl::test {

/// Messages that are published in a database, and what a reader of Kafka must find of them.
class OutboxWorld {
 public:
  explicit OutboxWorld(PostgresServer* server = nullptr, KafkaBroker* broker = nullptr)
      : world_(1, server, broker), topic_(world_.broker().new_topic("published", 3)) {}

  [[nodiscard]] PaymentsWorld& world() { return world_; }
  [[nodiscard]] const std::string& topic() const { return topic_; }

  /// A process that publishes, and may end itself at a step.
  std::unique_ptr<ChildProcess> start(std::vector<std::string> arguments = {},
                                      const std::string& more = "") {
    ProgramOptions options;
    options.arguments = std::move(arguments);
    options.extra_config = "[outbox]\nrelay = \"on\"\n" + more;
    return world_.start(options);
  }

  /// In one transaction, of ten keys, numbered on.
  void publish(int count) { world_.execute(publish_sql(count)); }
  /// The same as a statement for a transaction of the caller's, who keeps it from rolling back.
  std::string publish_sql(int count) {
    const auto first = published_ + 1;
    published_ += count;
    return fmt::format(
        "SELECT count(pawl.publish('{}', 'key ' || n % 10, n::text)) FROM generate_series({}, {}) "
        "n",
        topic_, first, published_);
  }

  [[nodiscard]] int published() const { return published_; }

  /// Books each payment, and publishes the id of its event so many times.
  void use_publishing_handler(int times = 1) {
    std::string handler = R"toml(sql = [
  "INSERT INTO ledger VALUES ({header:event-id}, {/account}, {/amount}::bigint)",
  "UPDATE accounts SET balance = balance + {/amount}::bigint, entries = entries + 1 WHERE id = {/account}",
)toml";
    for (int time = 0; time < times; ++time) {
      handler += fmt::format(
          "  \"SELECT pawl.publish('{}', {{/account}}, {{header:event-id}})\",\n", topic_);
    }
    world_.use_handler(handler + "]\n");
  }
  /// A consumer applies what was produced, and ends behind what that has published.
  void process_all(const std::string& url = "") {
    ProgramOptions options;
    options.url = url;
    options.extra_config = "[outbox]\nrelay = \"on\"\n";
    const auto consumer = world_.start(options);
    const ShowOnFailure show("consumer", *consumer);
    world_.wait_until_all_processed();
    wait_until_published();
    stop_cleanly(*consumer);
  }

  /// A relay publishes all that waits and 100 messages more, and is stopped.
  void relay_all() {
    const auto process = start();
    const ShowOnFailure show("relay", *process);
    wait_until_published();
    publish(100);
    wait_until_published();
    stop_cleanly(*process);
  }

  [[nodiscard]] std::int64_t waiting() const {
    return world_.number("SELECT count(*) FROM pawl.outbox");
  }
  void wait_until_published() const {
    wait_until([&] { return waiting() == 0; }, 90s, "the outbox to be empty");
  }
  /// Publishes on until the process kills itself at a step: there must be enough batches for it.
  void publish_until_killed(ChildProcess& process) {
    wait_until(
        [&] {
          if (!process.running())
            return true;
          publish(20);
          return false;
        },
        60s, "the process to kill itself");
    REQUIRE(process.wait(1s).signal == SIGKILL);
  }
  /// As when processes that died have been gone for long.
  void forget_the_dead() const {
    world_.execute("UPDATE pawl.outbox_shards SET lease_until = now() - interval '1 second'");
    world_.execute("DELETE FROM pawl.outbox_relays");
  }

  /// What is wrong with what read_committed readers see; empty: each message once, and those of a
  /// key in their order.
  [[nodiscard]] std::string wrong() {
    std::map<int, int> seen;
    std::map<std::string, int> last;
    std::string problems;
    for (const auto& record : read_topic(world_.broker().bootstrap(), topic_)) {
      const auto number = std::stoi(record.value.value());
      ++seen[number];
      auto& before = last[record.key.value()];
      if (number <= before)
        problems += fmt::format("{} behind {} of {}; ", number, before, *record.key);
      before = number;
    }
    for (int number = 1; number <= published_; ++number) {
      if (seen[number] != 1)
        problems += fmt::format("{} is there {} times; ", number, seen[number]);
    }
    if (static_cast<int>(seen.size()) != published_)
      problems += fmt::format("{} messages for {}; ", seen.size(), published_);
    return problems;
  }

  /// What is wrong with what read_uncommitted readers see; empty: each message once at least, and
  /// copies under its id.
  [[nodiscard]] std::string wrong_with_copies() {
    std::map<std::string, std::set<std::string>> ids;
    std::map<std::string, std::set<std::string>> values;
    for (const auto& record :
         read_topic(world_.broker().bootstrap(), topic_, ReadIsolation::kReadUncommitted)) {
      const auto id = record.header("pawl-outbox-id");
      ids[record.value.value()].insert(id);
      values[id].insert(*record.value);
    }
    std::string problems;
    for (int number = 1; number <= published_; ++number) {
      if (const auto count = ids[std::to_string(number)].size(); count != 1)
        problems += fmt::format("{} has {} ids; ", number, count);
    }
    if (static_cast<int>(values.size()) != published_)
      problems += fmt::format("{} ids for {}; ", values.size(), published_);
    return problems;
  }

 private:
  PaymentsWorld world_;
  std::string topic_;
  int published_ = 0;
};

/// PAWL_CRASH_ROUNDS, else few enough for every day.
inline int crash_rounds() {
  const char* rounds = std::getenv("PAWL_CRASH_ROUNDS");
  return rounds != nullptr ? std::atoi(rounds) : 2;
}

}  // namespace pawl::test
