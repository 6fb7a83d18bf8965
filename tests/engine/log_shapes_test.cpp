// What a log may look like besides one message after the other: transactions that were aborted or
// are open, control records, compaction, and nothing left at all.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <signal.h>

#include <fstream>
#include <sstream>

#include "payments_world.hpp"
#include "prelude.hpp"
#include "process_watch.hpp"

namespace {

/// A topic of one partition whose handler writes down what it was given, in order.
class OneLog {
 public:
  explicit OneLog(const pawl::testing::KafkaBroker::Config& config = {})
      : world(1), transactions_(world.broker().bootstrap(), world.topic() + "-producer") {
    world.execute("CREATE TABLE applied (n bigserial PRIMARY KEY, id text)");
    world.use_handler("sql = [\"INSERT INTO applied (id) VALUES ({header:event-id})\"]");
    if (!config.empty())
      world.broker().set_topic_config(world.topic(), config);
  }

  enum class End { kCommit, kAbort, kOpen };

  /// One transaction with these messages; the key of each is its first letter.
  void transaction(const std::vector<std::string>& ids, End end) {
    if (!open_)
      transactions_.begin();
    for (const auto& id : ids) {
      pawl::testing::Record record;
      record.key = id.substr(0, 1);
      record.value = "{}";
      record.headers = {{"event-id", id}};
      record.partition = 0;
      transactions_.send(world.topic(), record);
    }
    transactions_.flush();
    open_ = end == End::kOpen;
    if (end == End::kCommit)
      transactions_.commit();
    if (end == End::kAbort)
      transactions_.abort();
    pending_.insert(pending_.end(), ids.begin(), ids.end());
    if (end == End::kCommit)
      expected_.insert(expected_.end(), pending_.begin(), pending_.end());
    end_ += static_cast<std::int64_t>(ids.size());
    if (open_)
      return;
    pending_.clear();
    // Kafka writes the marker some time after it has taken the decision.
    ++end_;
    wait_until([&] { return world.broker().last_stable_offset(world.topic(), 0) == end_; }, 60s,
               "the transaction's marker");
  }

  /// Of the stable log, after the last transaction that ended.
  [[nodiscard]] std::int64_t end() const { return end_; }

  /// Draining ends, and exactly the committed messages were applied, in order; the register stands
  /// right before the stable end of the log, whatever stands there.
  void require_drained() {
    REQUIRE_NOTHROW(world.drain());
    REQUIRE(world.value("SELECT string_agg(id, ' ' ORDER BY n) FROM applied") ==
            fmt::format("{}", fmt::join(expected_, " ")));
    REQUIRE(world.stored(0) == world.broker().last_stable_offset(world.topic(), 0) - 1);
    REQUIRE(world.in_register(0, "state") == "running");
    REQUIRE(world.in_register(0, "applied_count") == std::to_string(expected_.size()));
  }

  /// What retention does when nobody produces for long enough.
  void remove_everything() {
    world.broker().delete_records(world.topic(), 0, -1);
    const auto marks = world.broker().watermarks(world.topic(), 0);
    REQUIRE(marks.low == marks.high);
  }

  /// The first offset that compaction has not looked at yet.
  std::int64_t cleaned() {
    std::ifstream file(world.broker().folder() / "data" / "cleaner-offset-checkpoint");
    std::string topic;
    for (std::string line; std::getline(file, line);) {
      std::istringstream words(line);
      std::int64_t partition = 0;
      std::int64_t offset = 0;
      if (words >> topic >> partition >> offset && topic == world.topic())
        return offset;
    }
    return 0;
  }

  PaymentsWorld world;

 private:
  KafkaProducer transactions_;
  bool open_ = false;
  std::int64_t end_ = 0;
  std::vector<std::string> pending_;
  std::vector<std::string> expected_;
};

using End = OneLog::End;

/// The register refuses one offset, as a trigger of somebody's may, and the refusals are counted.
class RefusedOffset {
 public:
  RefusedOffset(const PaymentsWorld& world, std::int64_t offset) : world_(world) {
    world_.execute("CREATE SEQUENCE refusals");
    // What nextval() has done no rollback takes back.
    world_.execute(
        fmt::format("CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN"
                    "  IF NEW.last_processed_offset = {} THEN"
                    "    PERFORM nextval('public.refusals'); RAISE EXCEPTION 'offset refused';"
                    "  END IF; RETURN NEW; END$$",
                    offset));
    world_.execute(
        "CREATE TRIGGER refuse BEFORE UPDATE ON pawl.processed_kafka_offsets"
        " FOR EACH ROW EXECUTE FUNCTION refuse()");
  }
  [[nodiscard]] std::int64_t refusals() const {
    return world_.number("SELECT CASE WHEN is_called THEN last_value ELSE 0 END FROM refusals");
  }
  void end() const { world_.execute("DROP TRIGGER refuse ON pawl.processed_kafka_offsets"); }

 private:
  const PaymentsWorld& world_;
};

}  // namespace

TEST_CASE("an empty log drains") {
  OneLog log;
  log.require_drained();
  log.require_drained();
}

TEST_CASE("a log of nothing but aborted transactions drains, also once retention has removed it") {
  OneLog log;
  log.transaction({"a1", "b1"}, End::kAbort);
  log.transaction({"a2", "b2"}, End::kAbort);
  log.require_drained();
  log.remove_everything();
  log.require_drained();
  log.transaction({"a3"}, End::kCommit);
  log.require_drained();
}

TEST_CASE(
    "aborted messages and control records are holes; what was committed is applied in order") {
  OneLog log;
  log.transaction({"a1", "b1"}, End::kAbort);
  log.transaction({"a2", "b2", "c2"}, End::kCommit);
  log.transaction({"a3"}, End::kAbort);
  log.transaction({"a4"}, End::kCommit);
  log.require_drained();
  // Where it stands now is a control record.
  log.transaction({"a5"}, End::kAbort);
  log.transaction({"a6", "b6"}, End::kCommit);
  log.transaction({"a7"}, End::kAbort);
  log.require_drained();
  log.remove_everything();
  log.require_drained();
  log.transaction({"a8"}, End::kCommit);
  log.require_drained();
}

TEST_CASE("an open transaction ends the log for now, and is applied once it is committed") {
  OneLog log;
  log.transaction({"a1"}, End::kCommit);
  log.transaction({"a2", "b2"}, End::kOpen);
  log.require_drained();
  log.transaction({"c2"}, End::kCommit);
  log.require_drained();
  log.transaction({"a3"}, End::kOpen);
  log.require_drained();
  log.transaction({}, End::kAbort);
  log.require_drained();
}

TEST_CASE("a running process follows transactions and is not halted by what retention removes") {
  OneLog log;
  const auto process = log.world.start();
  const ShowOnFailure show("consumer", *process);
  const auto wait_for = [&](const std::string& ids) {
    wait_until(
        [&] {
          return log.world.value("SELECT string_agg(id, ' ' ORDER BY n) FROM applied") == ids &&
                 log.world.stored(0) == log.end() - 1;
        },
        60s, ids);
  };
  log.transaction({"a1"}, End::kCommit);
  wait_for("a1");
  log.transaction({"a2"}, End::kAbort);
  wait_for("a1");
  log.remove_everything();
  log.transaction({"a3"}, End::kOpen);
  log.transaction({"b3"}, End::kCommit);
  wait_for("a1 a3 b3");
  process->kill(SIGTERM);
  REQUIRE(process->wait(30s).success());
  log.remove_everything();
  log.require_drained();
}

TEST_CASE("offsets that compaction removed are passed, before and between what it left") {
  OneLog log({{"cleanup.policy", "compact"},
              {"segment.ms", "100"},
              {"min.cleanable.dirty.ratio", "0.01"},
              {"min.compaction.lag.ms", "0"},
              {"delete.retention.ms", "0"}});
  for (int round = 0; round < 10; ++round) {
    log.transaction(
        {fmt::format("a{}", round), fmt::format("b{}", round), fmt::format("c{}", round)},
        round % 3 == 1 ? End::kAbort : End::kCommit);
  }
  log.transaction({"d0"}, End::kCommit);
  log.transaction({"a10"}, End::kCommit);
  const auto end = log.world.broker().watermarks(log.world.topic(), 0).high;
  // A segment is closed by the first message after its time, and only closed ones are cleaned.
  int more = 0;
  wait_until(
      [&] {
        const auto id = fmt::format("e{}", more++);
        log.transaction({id}, End::kCommit);
        return log.cleaned() > end;
      },
      60s, "compaction");
  log.world.drain();
  const auto applied =
      log.world.value("SELECT string_agg(id, ' ' ORDER BY n) FROM applied WHERE id NOT LIKE 'e%'");
  REQUIRE(applied == "b9 c9 d0 a10");
  REQUIRE(log.world.value("SELECT (array_agg(id ORDER BY n DESC))[1] FROM applied") ==
          fmt::format("e{}", more - 1));
  REQUIRE(log.world.value("SELECT bool_and(in_order) FROM (SELECT substr(id, 2)::int >"
                          " lag(substr(id, 2)::int, 1, -1) OVER (ORDER BY n) AS in_order"
                          " FROM applied WHERE id LIKE 'e%') e") == "t");
  REQUIRE(log.world.stored(0) == log.world.broker().last_stable_offset(log.world.topic(), 0) - 1);
  REQUIRE(log.world.in_register(0, "state") == "running");
}

// A control record ends the log, and the register cannot be moved over it.
TEST_CASE(
    "the end of the log that cannot be stored is no message: no policy, no letter, no attempt") {
  const std::string policy = GENERATE("halt", "dead-letter", "park", "skip");
  CAPTURE(policy);
  OneLog log;
  log.transaction({"a0", "b1", "a2"}, End::kCommit);
  const RefusedOffset refused(log.world, 3);
  ProgramOptions options;
  options.extra_config = fmt::format(
      "[failures]\non_failure = \"{}\"\nmax_attempts = 2\nretry_initial = \"5ms\"\n"
      "retry_max = \"20ms\"\nprogram_error_retry = \"100ms\"\n",
      policy);
  const auto process = log.world.start(options);
  const ShowOnFailure show("consumer", *process);
  wait_until(
      [&] {
        return refused.refusals() >= 4 || log.world.in_register(0, "halt_kind") == "message" ||
               log.world.number(
                   "SELECT (SELECT count(*) FROM pawl.dead_letters) + "
                   "(SELECT count(*) FROM pawl.skipped_messages)") > 0;
      },
      60s, "the end of the log to be refused again and again, or judged");
  CHECK(log.world.in_register(0, "halt_kind") == "program");
  CHECK(log.world.in_register(0, "halt_code") == "log_end_not_stored");

  // The real message of the offset behind it.
  log.transaction({"a4"}, End::kCommit);
  refused.end();
  wait_until([&] { return log.world.stored(0) == log.end() - 1; }, 60s, "the end of the log");
  CHECK(log.world.value("SELECT string_agg(id, ' ' ORDER BY n) FROM applied") == "a0 b1 a2 a4");
  CHECK(log.world.number("SELECT count(*) FROM pawl.dead_letters") == 0);
  CHECK(log.world.number("SELECT count(*) FROM pawl.skipped_messages") == 0);
  CHECK(log.world.in_register(0, "state || ' ' || attempts") == "running 0");
  stop_cleanly(*process);
}

TEST_CASE("a connection that breaks over the end of the log is no attempt of the next message") {
  OneLog log;
  log.world.set("consumer.pipeline=1");
  PostgresProxy proxy(log.world.url());
  // Only the step over the end of the log has claimed nothing.
  const auto cut = proxy.cut(Moment::kBefore, [](const ProxyEvent& event) {
    return event.text.find("last_processed_offset =") != std::string::npos &&
           event.text.find("$7::xid8 IS NULL") != std::string::npos;
  });
  log.transaction({"a0", "b1", "a2"}, End::kCommit);
  ProgramOptions options;
  options.url = proxy.url();
  const auto process = log.world.start(options);
  const ShowOnFailure show("consumer", *process);
  cut.wait(60s);
  log.transaction({"a4"}, End::kCommit);
  wait_until([&] { return log.world.stored(0) == log.end() - 1; }, 60s, "the end of the log");
  CHECK(log.world.value("SELECT string_agg(id, ' ' ORDER BY n) FROM applied") == "a0 b1 a2 a4");
  CHECK(log.world.in_register(0, "attempts") == "0");
  stop_cleanly(*process);
}
