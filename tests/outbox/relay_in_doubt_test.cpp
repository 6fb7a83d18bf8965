// Connections to Kafka that break, or fall silent, around the requests of the relay's transactions:
// nobody has told it then whether Kafka has the batch.
#include <csignal>
#include <fstream>

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

TEST_CASE("a lane is given up when Kafka stays away at the end of a transaction, and finds out") {
  const auto fault = GENERATE(KafkaFault::kCutBefore, KafkaFault::kCutAfter);
  // By the process itself, once Kafka is back, or by another one after its death.
  const bool dies = GENERATE(false, true);
  CAPTURE(static_cast<int>(fault), dies);
  auto& proxy = ProxiedBroker::shared().proxy();
  OutboxWorld outbox(nullptr, &ProxiedBroker::shared().broker());
  outbox.world().set("kafka.bootstrap_servers=" + proxy.bootstrap());
  const auto process = outbox.start();
  const ShowOnFailure show("relay", *process);
  outbox.publish(200);
  outbox.wait_until_published();
  proxy.arm(KafkaRequest::kEndTxn, fault, true);
  outbox.publish(200);
  if (dies) {
    wait_until([&] { return proxy.happened(); }, 60s, "the end of a transaction");
    process->kill(SIGKILL);
    process->wait(60s);
    outbox.forget_the_dead();
  } else {
    process->wait_for_output("committing a Kafka transaction", 60s);
  }
  REQUIRE(outbox.waiting() > 0);
  proxy.come_back();
  const auto second = dies ? outbox.start() : nullptr;
  auto& alive = dies ? *second : *process;
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
        " (SELECT count(*) AS n FROM pawl.outbox_lanes WHERE owner IS NOT NULL GROUP BY owner) o");
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
