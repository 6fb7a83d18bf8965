// Positions that Kafka cannot honour: the partition halts, says what to do, and goes on from where
// the operator says; everything else goes on meanwhile.
#include <fmt/format.h>
#include <signal.h>

#include <filesystem>

#include "group_of_processes.hpp"
#include "payments_world.hpp"
#include "prelude.hpp"
#include "process_watch.hpp"

namespace {

constexpr const char* kHandler = R"toml(
[[handler]]
topics = ["{}"]
sql = [
  "INSERT INTO ledger (event_id, account, amount) VALUES ({{header:event-id}}, {{/account}}, {{/amount}}::bigint)",
]
)toml";

/// A consumer of two topics: one whose log is damaged, with two partitions, and one beside it that
/// must not notice.
class DamagedLog {
 public:
  explicit DamagedLog(const std::string& kafka_options,
                      pawl::testing::KafkaBroker* broker = nullptr)
      : world(2, nullptr, broker),
        bystander_(world.broker().new_topic("bystander", 1)),
        producer_(world.broker().bootstrap()) {
    // A fetch must not wait at the broker for what a stopped process is not meant to get.
    world.set_kafka_options(kafka_options +
                            "\n[kafka.librdkafka]\n\"fetch.wait.max.ms\" = \"10\"\n");
    world.use_handler(
        "sql = [\"INSERT INTO ledger (event_id, account, amount) VALUES"
        " ({header:event-id}, {/account}, {/amount}::bigint)\"]");
  }

  void start(const std::vector<std::string>& arguments = {}) {
    process_ =
        world.start({.arguments = arguments, .extra_config = fmt::format(kHandler, bystander_)});
  }
  void stop() {
    process_->kill(SIGTERM);
    const auto status = process_->wait(40s);
    INFO(process_->output());
    REQUIRE(status.success());
    // The watch-dog found no partition that had stopped being read.
    REQUIRE(process_->output().find("Seeking again") == std::string::npos);
  }
  pawl::testing::ChildProcess& process() { return *process_; }

  /// Event ids are "TAG-PARTITION-0", "TAG-PARTITION-1", ...
  void send(const std::string& tag, int partition, int count) {
    send_to(world.topic(), tag, partition, count);
  }
  void send_to(const std::string& topic, const std::string& tag, int partition, int count) {
    for (int i = 0; i < count; ++i) {
      pawl::testing::Record record;
      record.value = R"({"account":"acc-1","amount":1})";
      record.headers = {{"event-id", fmt::format("{}-{}-{}", tag, partition, i)}};
      record.partition = partition;
      producer_.send(topic, record);
    }
    producer_.flush();
  }
  /// `taken_away`: waits in between until the process has lost its partitions of the topic.
  void recreate(const std::string& tag, int count, bool taken_away = false) {
    world.broker().delete_topic(world.topic());
    for (int p = 0; taken_away && p < 2; ++p)
      process_->wait_for_output(fmt::format("EVENT partition_revoked {} {} ", world.topic(), p),
                                120s);
    world.broker().create_topic(world.topic(), 2);
    for (int p = 0; p < 2; ++p)
      send(tag, p, count);
  }

  [[nodiscard]] std::int64_t entries(const std::string& tag, int partition) const {
    return world.number(
        fmt::format("SELECT count(*) FROM ledger WHERE event_id LIKE '{}-{}-%'", tag, partition));
  }
  void wait_for_entries(const std::string& tag, int partition, std::int64_t count) {
    try {
      wait_until([&] { return entries(tag, partition) >= count; }, 60s,
                 fmt::format("{} messages of {} [{}] to be applied", count, tag, partition));
    } catch (const pawl::testing::Timeout& timeout) {
      throw std::runtime_error(fmt::format("{}\n{}", timeout.what(), process_->output()));
    }
    REQUIRE(entries(tag, partition) == count);
  }

  /// Sends so many to both partitions, and waits until they are applied.
  void apply_to_each(const std::string& tag, int count) {
    for (int p = 0; p < 2; ++p)
      send(tag, p, count);
    for (int p = 0; p < 2; ++p)
      wait_for_entries(tag, p, count);
  }

  /// The other topic's consumption is alive.
  void require_bystander() {
    const auto tag = fmt::format("bystander{}", ++bystander_rounds_);
    send_to(bystander_, tag, 0, 5);
    wait_for_entries(tag, 0, 5);
  }

  /// The partition is halted for its position, with `facts` among the parameters of the halt.
  void require_halt(int partition, const std::map<std::string, std::string>& facts) {
    try {
      wait_until([&] { return world.in_register(partition, "state") == "halted"; }, 60s,
                 fmt::format("partition {} to halt", partition));
    } catch (const pawl::testing::Timeout& timeout) {
      throw std::runtime_error(fmt::format("{}\n{}", timeout.what(), process_->output()));
    }
    REQUIRE(world.in_register(partition, "halt_kind") == "position");
    INFO(world.in_register(partition, "halt_parameters"));
    REQUIRE(world.in_register(partition, "halt_parameters ->> 'next_offset'") ==
            world.in_register(partition, "last_processed_offset + 1"));
    for (const auto& [name, value] : facts)
      REQUIRE(world.in_register(partition, fmt::format("halt_parameters ->> '{}'", name)) == value);
    // The log has the command of the process that found it.
    process().wait_for_output(
        fmt::format(" --topic {} --partition {} --to ", world.topic(), partition), 30s);
  }

  /// How often the process has told another end of the partition's log.
  [[nodiscard]] int ends_told(int partition) const {
    const auto output = process_->output();
    const auto event = fmt::format("EVENT log_end_changed {} {} ", world.topic(), partition);
    int told = 0;
    for (auto at = output.find(event); at != std::string::npos; at = output.find(event, at + 1))
      ++told;
    return told;
  }

  /// A restart changes nothing about the halt.
  void require_halt_survives_restart(int partition) {
    const auto since = world.in_register(partition, "state_since");
    const auto facts = world.in_register(partition, kHaltFacts);
    stop();
    start();
    process().wait_for_output(fmt::format("EVENT partition_halted {} {}", world.topic(), partition),
                              30s);
    require_bystander();
    REQUIRE(world.in_register(partition, "state") == "halted");
    REQUIRE(world.in_register(partition, "state_since") == since);
    REQUIRE(world.in_register(partition, kHaltFacts) == facts);
  }

  /// Removes all but the last five of twenty new records of partition 0 before the running process
  /// has fetched them; returns the log's new start. Their tag is "TAG" and the number of the try.
  struct Overtaken {
    std::string tag;
    std::int64_t start;
  };
  Overtaken overtake(const std::string& tag) {
    // A fetch that was under way when the process was stopped may bring them all: once more.
    for (int attempt = 0;; ++attempt) {
      const auto with_number = fmt::format("{}{}", tag, attempt);
      process_->kill(SIGSTOP);
      pawl::test::wait_until_stopped(*process_, 60s);
      send(with_number, 0, 20);
      const auto high = world.broker().watermarks(world.topic(), 0).high;
      world.broker().delete_records(world.topic(), 0, high - 5);
      process_->kill(SIGCONT);
      bool halted = false;
      wait_until(
          [&] {
            halted = world.in_register(0, "state") == "halted";
            return halted || world.stored(0) == high - 1;
          },
          60s, "the partition to halt or to have fetched everything before\n" + process_->output());
      if (halted)
        return {with_number, high - 5};
    }
  }

  /// What `pawl offsets set` does.
  void set_offset(int partition, std::int64_t last_processed) {
    world.execute(fmt::format(
        "SELECT pawl.operator_change(consumer_id, topic, partition, {}, 'running', 'set', 'test')"
        "  FROM pawl.processed_kafka_offsets WHERE topic = '{}' AND partition = {}",
        last_processed, world.topic(), partition));
  }

  PaymentsWorld world;

 private:
  std::string bystander_;
  pawl::testing::KafkaProducer producer_;
  std::unique_ptr<pawl::testing::ChildProcess> process_;
  int bystander_rounds_ = 0;
};

}  // namespace

TEST_CASE("retention that overtook the stored offset halts that partition alone") {
  const auto protocol = GENERATE(from_range(protocols()));
  const bool running = GENERATE(false, true);
  INFO(protocol.name << (running ? ", while running" : ", before the start"));
  DamagedLog log(protocol.config);
  auto& broker = log.world.broker();
  log.start();
  log.apply_to_each("before", 10);

  std::int64_t start = 0;
  std::string tag = "after";
  if (running) {
    const auto overtaken = log.overtake("after");
    start = overtaken.start;
    tag = overtaken.tag;
  } else {
    log.stop();
    log.send("after", 0, 20);
    start = broker.watermarks(log.world.topic(), 0).high - 5;
    broker.delete_records(log.world.topic(), 0, start);
    log.start();
  }
  log.send("after", 1, 20);

  log.require_halt(0, {{"log_start", std::to_string(start)}});
  log.wait_for_entries("after", 1, 20);
  log.require_bystander();
  log.require_halt_survives_restart(0);

  const auto before = log.entries(tag, 0);
  log.set_offset(0, start - 1);
  log.wait_for_entries(tag, 0, before + 5);
  REQUIRE(log.world.in_register(0, "state") == "running");
  log.send("later", 0, 5);
  log.wait_for_entries("later", 0, 5);
  log.stop();
}

TEST_CASE("an operator's position is taken by the process that met the halt, without a restart") {
  const auto protocol = GENERATE(from_range(protocols()));
  INFO(protocol.name);
  DamagedLog log(protocol.config);
  log.start();
  log.apply_to_each("before", 10);

  for (const auto* round : {"first", "second", "third"}) {
    const auto [tag, start] = log.overtake(round);
    log.require_halt(0, {{"log_start", std::to_string(start)}});
    // Beside the halted one the others are untouched, also while its fetcher is started anew.
    log.send(round, 1, 10);
    log.wait_for_entries(round, 1, 10);
    // First to where the log has nothing either: it halts again and keeps listening.
    const auto before = log.entries(tag, 0);
    log.set_offset(0, start - 3);
    log.require_halt(0, {{"next_offset", std::to_string(start - 2)}});
    log.set_offset(0, start - 1);
    log.wait_for_entries(tag, 0, before + 5);
    log.require_bystander();
  }
  log.stop();
}

TEST_CASE("a topic deleted and created again halts, however long its new log is") {
  const auto protocol = GENERATE(from_range(protocols()));
  const bool running = GENERATE(false, true);
  // Longer than the old one is what Kafka's own clients do not notice: they go on mid-log.
  const int count = protocol.name == kProtocols.front().name ? GENERATE(0, 3, 200) : 200;
  INFO(protocol.name << (running ? ", while running, " : ", before the start, ") << count);
  DamagedLog log(protocol.config);
  log.start();
  log.apply_to_each("old", 10);
  const auto old_id = log.world.broker().topic_id(log.world.topic());

  if (!running)
    log.stop();
  log.recreate("new", count);
  if (!running)
    log.start();

  for (int p = 0; p < 2; ++p) {
    log.require_halt(p, {{"old_topic_id", old_id},
                         {"topic_id", log.world.broker().topic_id(log.world.topic())}});
  }
  log.require_bystander();
  log.require_halt_survives_restart(0);
  for (int p = 0; p < 2; ++p)
    log.set_offset(p, -1);
  for (int p = 0; p < 2; ++p)
    log.wait_for_entries("new", p, count);
  log.apply_to_each("later", 5);
  log.stop();
}

TEST_CASE("a topic recreated soon after the start halts and says what was applied of the new one") {
  // Frozen at this step, it sees nothing of the change itself; in the second place on processors
  // that have other things to do.
  const auto moment = GENERATE("assignment_received:1", "partition_assigned:1",
                               "partition_assigned:2", "fetch_positioned:1", "fetch_positioned:2",
                               "partition_caught_up:1", "partition_caught_up:2");
  const bool busy = GENERATE(false, true);
  INFO(moment << (busy ? ", busy" : ""));
  DamagedLog log(kProtocols.front().config);
  log.start();
  log.apply_to_each("old", 10);
  log.stop();
  const auto old_id = log.world.broker().topic_id(log.world.topic());

  std::vector<std::unique_ptr<pawl::testing::ChildProcess>> others;
  for (int i = 0; busy && i < 3; ++i) {
    others.push_back(std::make_unique<pawl::testing::ChildProcess>(
        "/bin/sh", std::vector<std::string>{"-c", "while :; do :; done"}));
  }
  log.start({"--freeze", moment});
  pawl::test::wait_until_stopped(log.process(), 60s);
  log.recreate("new", 200);
  log.process().kill(SIGCONT);

  for (int p = 0; p < 2; ++p) {
    log.require_halt(p, {{"old_topic_id", old_id},
                         {"topic_id", log.world.broker().topic_id(log.world.topic())}});
    // All that was applied of the new topic is named.
    const auto stored = log.world.number(
        fmt::format("SELECT last_processed_offset FROM pawl.processed_kafka_offsets"
                    " WHERE topic = '{}' AND partition = {}",
                    log.world.topic(), p));
    const auto applied = log.entries("new", p);
    const auto from = log.world.in_register(p, "halt_parameters ->> 'applied_from'");
    if (applied > 0) {
      REQUIRE(applied == stored - 9);
      REQUIRE(from == "10");
    } else {
      REQUIRE(stored == 9);
      REQUIRE((from.empty() || from == "10"));
    }
  }
  log.require_bystander();
  for (const auto& other : others)
    other->kill(SIGKILL);
  log.stop();
}

// What is tried again by itself would go on in the new log at the old offset.
TEST_CASE("a topic recreated while its messages wait for the program halts") {
  // Else the group has not noticed before the topic is there again.
  const bool taken_away = GENERATE(false, true);
  INFO(taken_away);
  DamagedLog log(kProtocols.front().config);
  log.start();
  log.apply_to_each("old", 10);
  const auto old_id = log.world.broker().topic_id(log.world.topic());
  log.world.execute("ALTER TABLE ledger RENAME TO ledger_away");
  for (int p = 0; p < 2; ++p)
    log.send("waits", p, 1);
  std::vector<std::string> since;
  for (int p = 0; p < 2; ++p) {
    wait_until([&] { return log.world.in_register(p, "halt_kind") == "program"; }, 60s,
               "a table to be missed\n" + log.process().output());
    since.push_back(log.world.in_register(p, "state_since"));
  }
  // The monitor looks at the topic between two ends of the log that it tells.
  for (int ends = log.ends_told(0), more = 1; more <= 3; ++more) {
    wait_until(
        [&] {
          log.send("waits", 0, 1);
          return log.ends_told(0) >= ends + more;
        },
        60s, "the end of the log to be told\n" + log.process().output());
  }
  log.recreate("new", 50, taken_away);
  for (int p = 0; p < 2; ++p) {
    wait_until([&] { return log.world.in_register(p, "halt_kind") == "position"; }, 60s,
               "the new topic to be noticed\n" + log.process().output());
    log.require_halt(p, {{"old_topic_id", old_id},
                         {"topic_id", log.world.broker().topic_id(log.world.topic())}});
    CHECK(log.world.in_register(p, "state_since") != since[p]);
    CHECK(log.world.in_register(p, "halt_parameters ->> 'earlier_halt'") == "program_error");
    CHECK_THAT(log.world.in_register(p, "halt_parameters ->> 'earlier_cause'"),
               ContainsSubstring("ledger"));
  }
  CHECK(log.world.in_register(0, "(halt_parameters ->> 'unprocessed')::bigint > 0") == "t");
  CHECK(log.world.in_register(0, "halt_parameters ->> 'next_offset'") == "10");
  log.world.execute("ALTER TABLE ledger_away RENAME TO ledger");
  log.require_bystander();
  for (int p = 0; p < 2; ++p)
    CHECK(log.entries("new", p) == 0);
  log.stop();
}

TEST_CASE("a log that ends before the stored offset halts") {
  const bool running = GENERATE(false, true);
  INFO((running ? "while running" : "before the start"));
  pawl::testing::KafkaBroker broker;
  DamagedLog log(kProtocols.front().config, &broker);
  log.start();
  log.apply_to_each("old", 10);

  if (!running)
    log.stop();
  broker.stop();
  // The same topic, but its first partition's disk was lost.
  const auto folder = broker.folder() / "data" / (log.world.topic() + "-0");
  REQUIRE(std::filesystem::remove(folder / "00000000000000000000.log"));
  std::filesystem::remove(folder / "leader-epoch-checkpoint");
  broker.start();
  if (!running)
    log.start();

  log.require_halt(0, {{"next_offset", "10"}, {"log_end", "0"}});
  log.require_bystander();
  log.send("new", 1, 5);
  log.wait_for_entries("new", 1, 5);
  log.require_halt_survives_restart(0);
  log.set_offset(0, -1);
  log.send("new", 0, 5);
  log.wait_for_entries("new", 0, 5);
  log.stop();
}
