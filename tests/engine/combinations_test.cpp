// Two kinds of handler on one topic, with each policy, in each mode, and processes killed
// meanwhile: each message ends once, in the order that is promised, and nothing overtakes what was
// parked.
#include "combinations.hpp"

#include <fmt/format.h>

#include <csignal>
#include <set>

#include "payment_api.hpp"
#include "payments_world.hpp"
#include "prelude.hpp"
#include "process_watch.hpp"

namespace {

/// Messages of a round; one kill ends a round.
constexpr int kMessages = 60;
constexpr int kAccounts = 10;
/// In which a process is killed, and at which such step.
const std::vector<std::pair<std::string, int>> kKills{{"commit_sent", 5}, {"message_fetched", 17}};

/// How each message ended, with the transaction that ended it. Transactions of one partition follow
/// each other in the log's order, so their ids grow; so do those of a record key.
constexpr const char* kEnded = R"sql(
  CREATE VIEW ended AS
  SELECT partition, kafka_offset, xmin::text::bigint AS transaction, split_part(key, '/', 2) AS account
    FROM pawl.idempotency_keys
  UNION ALL
  SELECT partition, kafka_offset, xmin::text::bigint, convert_from(record_key, 'UTF8')
    FROM pawl.dead_letters
  UNION ALL
  SELECT partition, kafka_offset, xmin::text::bigint, convert_from(record_key, 'UTF8')
    FROM pawl.skipped_messages
)sql";

struct Counts {
  int messages = 0;
  int poison = 0;
  int writing = 0;  ///< those of handlers that write the ledger, without the poison
  int calls = 0;    ///< those of handlers that call, without the poison
};

/// One combination's topic. A message goes to the first handler or to the second, in runs of
/// different lengths; its account is its record key, and keeps its partition.
class Combined {
 public:
  Combined(const Combination& combination, const PaymentApi& api)
      : combination_(combination),
        first_(handler_kind(combination.first)),
        second_(handler_kind(combination.second)),
        mode_(topic_mode(combination.mode)),
        port_(api.port()),
        world_(2) {
    world_.use_handler(fmt::format(R"toml(scope = "first"
when = '{{header:handler}} == "first"'
{}{}
[[handler]]
topics = ["{}"]
scope = "second"
{})toml",
                                   mode_.first, toml_of(first_), world_.topic(), toml_of(second_)));
    for (const auto& setting : mode_.settings)
      world_.set(setting);
    for (const auto* setting :
         {"consumer.pipeline=4", "batch.max_messages=8", "calls.lease_time=2s",
          "failures.circuit_breaker=0", "failures.max_crashes=100", "failures.max_attempts=2",
          "failures.retry_initial=1ms", "failures.retry_later=[\"1h\"]"})
      world_.set(setting);
    world_.set("failures.on_failure=" + combination.policy);
    world_.set_kafka_options("session_timeout = \"1s\"");
  }

  void produce() {
    for (int i = 0; i < kMessages; ++i)
      produce_one();
  }

  std::unique_ptr<ChildProcess> start(std::vector<std::string> arguments) {
    ProgramOptions options;
    options.arguments = std::move(arguments);
    options.environment["PAWL_TEST_API"] = fmt::format("127.0.0.1:{}", port_);
    return world_.start(options);
  }

  [[nodiscard]] PaymentsWorld& world() { return world_; }
  [[nodiscard]] const Counts& counts() const { return counts_; }
  /// Messages that ended before one that they should have followed.
  [[nodiscard]] std::int64_t misplaced() const {
    return world_.number(fmt::format(
        "SELECT count(*) FROM (SELECT transaction, max(transaction) OVER (PARTITION BY {} ORDER BY "
        "kafka_offset ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS before FROM ended) o "
        "WHERE transaction < before",
        mode_.by_key ? "partition, account" : "partition"));
  }
  [[nodiscard]] bool has_calls() const { return first_.calls || second_.calls; }

 private:
  [[nodiscard]] std::string toml_of(const HandlerKind& kind) const {
    auto toml = kind.toml;
    if (const auto at = toml.find("API"); at != std::string::npos)
      toml.replace(at, 3, fmt::format("http://127.0.0.1:{}", port_));
    return toml;
  }

  void produce_one() {
    const int number = counts_.messages++;
    // Runs of one to five messages of one handler.
    if (--left_in_run_ <= 0) {
      to_first_ = !to_first_;
      left_in_run_ = 1 + number * 7 % 5;
    }
    const auto& kind = to_first_ ? first_ : second_;
    // In each ten another one, so that those of an account go to both handlers.
    const int account = (number * 7 + number / 10 * 3) % kAccounts;
    // With "halt" nothing would be processed behind it. One of each handler, in two partitions.
    const bool poison =
        combination_.policy != "halt" && (number % kMessages == 31 || number % kMessages == 45);
    counts_.poison += poison ? 1 : 0;
    counts_.writing += !poison && kind.writes ? 1 : 0;
    counts_.calls += !poison && kind.calls ? 1 : 0;
    Record record;
    record.key = fmt::format("acc-{}", account);
    record.value =
        fmt::format(R"({{"account":"acc-{}","amount":{}}})", account, poison ? "\"twelve\"" : "1");
    record.headers = {
        {"event-id", fmt::format("{}-{}/acc-{}", poison ? "poison" : "event", number, account)},
        {"handler", to_first_ ? "first" : "second"}};
    record.partition = account % 2;
    world_.produce_record(record);
  }

  const Combination combination_;
  const HandlerKind& first_;
  const HandlerKind& second_;
  const TopicMode& mode_;
  const int port_;
  PaymentsWorld world_;
  Counts counts_;
  int left_in_run_ = 0;
  bool to_first_ = false;
};

/// Charges once what it knows already, and refuses what is poison.
ApiAnswer answer(const ApiCall& call) {
  const bool poison = call.headers.at("event-id").starts_with("poison");
  return {.charge = !poison, .status = poison ? 400 : 200};
}

}  // namespace

TEST_CASE("the combinations of an everyday run cover each pair of values") {
  const auto& all = all_combinations();
  const auto chosen = pairwise(all);
  CHECK(chosen == pairwise(all));
  CHECK(chosen.size() < all.size() / 5);
  const auto pairs = [](const std::vector<Combination>& combinations) {
    std::set<std::string> found;
    for (const auto& c : combinations) {
      for (const auto& pair :
           {c.first + "/" + c.second, c.first + "/1/" + c.policy, c.first + "/1/" + c.mode,
            c.second + "/2/" + c.policy, c.second + "/2/" + c.mode, c.policy + "/" + c.mode})
        found.insert(pair);
    }
    return found;
  };
  CHECK(pairs(chosen) == pairs(all));
}

TEST_CASE("two kinds of handler on one topic keep order and effects, whoever dies or fails") {
  const auto combination = GENERATE(from_range(chosen_combinations()));
  CAPTURE(combination.name());
  PaymentApi api(true, answer);
  Combined combined(combination, api);
  auto& world = combined.world();
  for (const auto& [step, nth] : kKills) {
    combined.produce();
    const auto process = combined.start({"--events", "--kill", fmt::format("{}:{}", step, nth)});
    const ShowOnFailure show(combination.name() + " " + step, *process);
    REQUIRE(process->wait(60s).signal == SIGKILL);
  }
  combined.produce();
  const auto process = combined.start({"--events", "--drain"});
  const ShowOnFailure show(combination.name() + " to the end", *process);
  REQUIRE(process->wait(120s).success());

  world.execute(kEnded);
  const auto& counts = combined.counts();
  const auto number = [&](const std::string& sql) { return world.number(sql); };
  // Each message ended, and once.
  CHECK(number("SELECT count(DISTINCT (partition, kafka_offset)) FROM ended") == counts.messages);
  CHECK(number("SELECT count(*) FROM ended") == counts.messages);
  CHECK(world.processed() == counts.messages);
  CHECK(combined.misplaced() == 0);
  // The ledger's primary key would hide a second effect, the accounts show it.
  CHECK(number("SELECT count(*) FROM ledger") == number("SELECT sum(entries) FROM accounts"));
  CHECK(number("SELECT count(*) FROM ledger JOIN pawl.idempotency_keys ON key = event_id") ==
        number("SELECT count(*) FROM ledger"));
  for (const auto& [key, charges] : api.charges_by_key())
    CHECK(charges == 1);
  CHECK(number("SELECT count(*) FROM pawl.leases WHERE owner IS NOT NULL") == 0);
  CHECK(number("SELECT count(*) FROM pawl.out_of_order_completions WHERE outcome IS NOT NULL") ==
        0);

  const bool parks = combination.policy == "park" || combination.policy == "retry-later";
  if (parks) {
    CHECK(number("SELECT count(*) FROM pawl.dead_letters WHERE status = 'dead'") >= 1);
    CHECK(number("SELECT count(*) FROM ended e JOIN pawl.dead_letters d ON d.partition = "
                 "e.partition AND convert_from(d.record_key, 'UTF8') = e.account AND "
                 "d.kafka_offset < e.kafka_offset JOIN pawl.idempotency_keys k ON k.partition = "
                 "e.partition AND k.kafka_offset = e.kafka_offset") == 0);
    return;
  }
  CHECK(number("SELECT count(*) FROM ledger") == counts.writing);
  CHECK(api.charges() == counts.calls);
  CHECK(number("SELECT count(*) FROM pawl.dead_letters") ==
        (combination.policy == "dead-letter" ? counts.poison : 0));
  CHECK(number("SELECT count(*) FROM pawl.skipped_messages") ==
        (combination.policy == "skip" ? counts.poison : 0));
}
