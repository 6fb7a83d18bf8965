// Connections to Kafka that break, or fall silent, around the requests of the relay's transactions:
// nobody has told it then whether Kafka has the batch.
#include <csignal>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "free_port.hpp"
#include "kafka_proxy.hpp"
#include "outbox_world.hpp"

namespace {

std::string first_line(const std::filesystem::path& file) {
  std::ifstream stream(file);
  std::string line;
  std::getline(stream, line);
  return line;
}

/// A broker with two listeners: one that everybody uses, and one that is reached, and advertised,
/// through a proxy.
class ProxiedBroker {
 public:
  ProxiedBroker() : behind_(free_port()), proxy_(behind_) {
    std::ofstream(broker_.folder() / "extra.properties", std::ios::app) << fmt::format(
        "listeners=PLAINTEXT://{0},PROXIED://127.0.0.1:{1},CONTROLLER://127.0.0.1:{2}\n"
        "advertised.listeners=PLAINTEXT://{0},PROXIED://{3}\n"
        "listener.security.protocol.map=PLAINTEXT:PLAINTEXT,PROXIED:PLAINTEXT,"
        "CONTROLLER:PLAINTEXT\n",
        broker_.bootstrap(), behind_, first_line(broker_.folder() / "controller_port"),
        proxy_.bootstrap());
    broker_.restart();
  }
  static ProxiedBroker& shared() {
    static ProxiedBroker broker;
    return broker;
  }

  [[nodiscard]] KafkaBroker& broker() { return broker_; }
  [[nodiscard]] KafkaProxy& proxy() { return proxy_; }

 private:
  KafkaBroker broker_;
  std::uint16_t behind_;
  KafkaProxy proxy_;
};

std::string content(const std::filesystem::path& file) {
  std::ifstream stream(file);
  return {std::istreambuf_iterator<char>(stream), {}};
}

/// Another broker of the same cluster, without a controller: what is on it alone is nowhere when it
/// is dead. It is run as the first one is, by the command line of its process.
class SecondBroker {
 public:
  explicit SecondBroker(const KafkaBroker& first)
      : command_(command_of(first)), port_(free_port()) {
    std::filesystem::copy(first.folder() / "kafka-log4j2.properties", folder_.path());
    std::filesystem::copy(first.folder() / "server.properties", folder_.path());
    std::ofstream(folder_.path() / "server.properties", std::ios::app) << fmt::format(
        "\nprocess.roles=broker\nnode.id=2\n"
        "listeners=PLAINTEXT://127.0.0.1:{0}\nadvertised.listeners=PLAINTEXT://127.0.0.1:{0}\n",
        port_);
    const auto meta = content(first.folder() / "data" / "meta.properties");
    const auto id = meta.find("cluster.id=") + 11;
    auto arguments = command_;
    arguments[arguments.size() - 2] = "kafka.tools.StorageTool";
    arguments.back() = "format";
    for (const auto& more : {"--config"s, "server.properties"s,
                             "--cluster-id=" + meta.substr(id, meta.find('\n', id) - id)})
      arguments.push_back(more);
    REQUIRE(run(arguments)->wait(60s).success());
    start();
  }

  void start() {
    process_ = run(command_);
    process_->wait_for_output("Kafka Server started", 120s);
  }
  void kill() {
    process_->kill(SIGKILL);
    process_->wait(60s);
  }

 private:
  static std::vector<std::string> command_of(const KafkaBroker& first) {
    const auto pid = content(first.folder() / "service.pid");
    const auto line =
        content(std::filesystem::path("/proc") / pid.substr(0, pid.find(' ')) / "cmdline");
    std::vector<std::string> words;
    for (std::size_t at = 0; at < line.size(); at = line.find('\0', at) + 1)
      words.push_back(line.substr(at, line.find('\0', at) - at));
    // ... kafka.Kafka server.properties
    REQUIRE(words.size() > 3);
    REQUIRE(words[words.size() - 2] == "kafka.Kafka");
    return words;
  }

  std::unique_ptr<ChildProcess> run(const std::vector<std::string>& command) {
    return std::make_unique<ChildProcess>(
        command.front(), std::vector<std::string>(command.begin() + 1, command.end()),
        ChildOptions{.output = folder_.path() / fmt::format("output {}", ++runs_),
                     .working_directory = folder_.path()});
  }

  TempDir folder_;
  std::vector<std::string> command_;
  std::uint16_t port_;
  int runs_ = 0;
  std::unique_ptr<ChildProcess> process_;
};

}  // namespace

TEST_CASE("a connection that fails around a request of a Kafka transaction costs no message") {
  const auto request = GENERATE(KafkaRequest::kAddPartitionsToTxn, KafkaRequest::kProduce,
                                KafkaRequest::kAddOffsetsToTxn, KafkaRequest::kTxnOffsetCommit,
                                KafkaRequest::kEndTxn);
  const auto fault =
      GENERATE(KafkaFault::kCutBefore, KafkaFault::kCutAfter, KafkaFault::kSwallowed);
  CAPTURE(static_cast<int>(request), static_cast<int>(fault));
  auto& proxy = ProxiedBroker::shared().proxy();
  OutboxWorld outbox(nullptr, &ProxiedBroker::shared().broker());
  outbox.world().set("kafka.bootstrap_servers=" + proxy.bootstrap());
  const auto process = outbox.start();
  const ShowOnFailure show("relay", *process);
  // Whom nobody tells waits for as long as a commit may take.
  const int rounds = fault == KafkaFault::kSwallowed ? 1 : crash_rounds();
  for (int round = 0; round < rounds; ++round) {
    outbox.publish(200);
    outbox.wait_until_published();
    proxy.arm(request, fault);
    outbox.publish(200);
    wait_until([&] { return proxy.happened(); }, 60s, "the request to come");
    outbox.publish(200);
    outbox.wait_until_published();
  }
  stop_cleanly(*process);
  CHECK(outbox.wrong() == "");
  CHECK(outbox.wrong_with_copies() == "");
}

TEST_CASE("a lane is given up when Kafka stays away in a transaction, and finds out") {
  enum class Next : std::uint8_t { kGoesOn, kDies, kIsStopped };  // before Kafka is back
  struct Row {
    KafkaRequest request;
    KafkaFault fault;
    Next next;
    const char* given_up_at;
  };
  const auto* const ending = "committing a Kafka transaction";
  // librdkafka waits there for as long as it has no broker, whatever time it is given.
  const auto* const sending = "sending the batch's number";
  const auto row = GENERATE_COPY(values<Row>({
      {KafkaRequest::kEndTxn, KafkaFault::kCutBefore, Next::kGoesOn, ending},
      {KafkaRequest::kEndTxn, KafkaFault::kCutBefore, Next::kDies, ending},
      {KafkaRequest::kEndTxn, KafkaFault::kCutAfter, Next::kGoesOn, ending},
      {KafkaRequest::kEndTxn, KafkaFault::kCutAfter, Next::kDies, ending},
      {KafkaRequest::kAddOffsetsToTxn, KafkaFault::kCutBefore, Next::kGoesOn, sending},
      {KafkaRequest::kAddOffsetsToTxn, KafkaFault::kCutBefore, Next::kIsStopped, sending},
      {KafkaRequest::kTxnOffsetCommit, KafkaFault::kCutBefore, Next::kGoesOn, sending},
      {KafkaRequest::kTxnOffsetCommit, KafkaFault::kCutBefore, Next::kIsStopped, sending},
  }));
  CAPTURE(static_cast<int>(row.request), static_cast<int>(row.fault), static_cast<int>(row.next));
  auto& proxy = ProxiedBroker::shared().proxy();
  OutboxWorld outbox(nullptr, &ProxiedBroker::shared().broker());
  outbox.world().set("kafka.bootstrap_servers=" + proxy.bootstrap());
  const auto process = outbox.start();
  const ShowOnFailure show("relay", *process);
  outbox.publish(200);
  outbox.wait_until_published();
  proxy.arm(row.request, row.fault, true);
  outbox.publish(200);
  if (row.next == Next::kDies) {
    wait_until([&] { return proxy.happened(); }, 60s, "the request to come");
    process->kill(SIGKILL);
    process->wait(60s);
    outbox.forget_the_dead();
  } else {
    process->wait_for_output(row.given_up_at, 60s);
  }
  if (row.next == Next::kIsStopped)
    stop_cleanly(*process);
  REQUIRE(outbox.waiting() > 0);
  proxy.come_back();
  const auto second = row.next == Next::kGoesOn ? nullptr : outbox.start();
  auto& alive = second ? *second : *process;
  const ShowOnFailure show_alive("what is left", alive);
  outbox.publish(200);
  outbox.wait_until_published();
  stop_cleanly(alive);
  CHECK(outbox.wrong() == "");
  CHECK(outbox.wrong_with_copies() == "");
}

TEST_CASE(
    "a process that cannot reach Kafka leaves its lanes to one that can, until it can again") {
  auto& proxy = ProxiedBroker::shared().proxy();
  OutboxWorld outbox(nullptr, &ProxiedBroker::shared().broker());
  auto& world = outbox.world();
  const auto owners = [&] {
    return world.value(
        "SELECT coalesce(string_agg(n::text, ' ' ORDER BY n), '') FROM"
        " (SELECT count(*) AS n FROM pawl.outbox_shards WHERE owner IS NOT NULL GROUP BY owner) o");
  };
  const auto ill = [&] {
    return world.number("SELECT count(*) FROM pawl.outbox_relays WHERE problem IS NOT NULL");
  };
  const auto direct = outbox.start();
  const ShowOnFailure show_direct("direct", *direct);
  wait_until([&] { return owners() == "4"; }, 60s, "one process to have all lanes");
  world.set("kafka.bootstrap_servers=" + proxy.bootstrap());
  const auto proxied = outbox.start();
  const ShowOnFailure show_proxied("proxied", *proxied);
  wait_until([&] { return owners() == "2 2"; }, 60s, "two processes to have two lanes each");
  proxy.arm(KafkaRequest::kEndTxn, KafkaFault::kCutBefore, true);
  wait_until(
      [&] {
        outbox.publish(20);
        return proxy.happened();
      },
      60s, "the end of a transaction");
  outbox.publish(200);
  outbox.wait_until_published();
  // Also one of its lanes in which nothing waited.
  wait_until([&] { return owners() == "4"; }, 60s, "the other one to have all lanes");
  wait_until([&] { return ill() == 1; }, 60s, "it to tell why it publishes nothing");
  proxy.come_back();
  wait_until([&] { return owners() == "2 2"; }, 60s, "it to have its share again");
  CHECK(ill() == 0);
  outbox.publish(200);
  outbox.wait_until_published();
  stop_cleanly(*proxied);
  stop_cleanly(*direct);
  CHECK(outbox.wrong() == "");
  CHECK(outbox.wrong_with_copies() == "");
}

// Also of the lane that meets it: Kafka cannot end that transaction before the partition is back.
TEST_CASE(
    "a topic partition without a leader holds up its own messages alone, and keeps their order") {
  KafkaBroker broker;
  OutboxWorld outbox(nullptr, &broker);
  auto& world = outbox.world();
  const auto process = outbox.start();
  const ShowOnFailure show("relay", *process);
  // Kafka's own topics and the lanes' are made now, while there is one broker.
  outbox.publish(100);
  outbox.wait_until_published();
  SecondBroker second(broker);
  // Three of them on each broker.
  broker.create_topic("half", 6);
  int last = 0;
  const auto publish_half = [&](int count) {
    const auto sql = fmt::format(
        "SELECT count(pawl.publish('half', 'key ' || n % 60, n::text)) FROM generate_series({}, "
        "{}) n",
        last + 1, last + count);
    last += count;
    return sql;
  };
  const auto waiting_of = [&](const std::string& topic) {
    return world.number(fmt::format("SELECT count(*) FROM pawl.outbox WHERE topic = '{}'", topic));
  };
  const auto publish_both = [&] {
    world.execute(publish_half(300) + "; " + outbox.publish_sql(300));
  };
  publish_both();
  outbox.wait_until_published();

  second.kill();
  publish_both();
  wait_until([&] { return waiting_of(outbox.topic()) == 0; }, 90s, "the others to be published");
  REQUIRE(waiting_of("half") > 0);
  wait_until(
      [&] {
        return world
                   .value(
                       "SELECT coalesce(string_agg(unwritable_partitions, ''), '') FROM "
                       "pawl.outbox_relays")
                   .find("half[") != std::string::npos;
      },
      60s, "it to tell what it leaves out");
  CHECK(waiting_of("half") < 300);
  // What comes now does not even wait for a transaction that fails.
  publish_both();
  wait_until([&] { return waiting_of(outbox.topic()) == 0; }, 90s, "the others to be published");

  second.start();
  outbox.wait_until_published();
  wait_until(
      [&] {
        return world.number(
                   "SELECT count(*) FROM pawl.outbox_relays WHERE unwritable_partitions IS NOT "
                   "NULL") == 0;
      },
      60s, "it to leave nothing out");
  stop_cleanly(*process);
  CHECK(outbox.wrong() == "");
  std::set<int> seen;
  std::map<std::string, int> before;
  for (const auto& record : read_topic(broker.bootstrap(), "half")) {
    const auto number = std::stoi(record.value.value());
    INFO(number);
    CHECK(seen.insert(number).second);
    CHECK(std::exchange(before[record.key.value()], number) < number);
  }
  CHECK(static_cast<int>(seen.size()) == last);
}
