#include <csignal>

#include "prelude.hpp"
#include "site.hpp"

namespace {

void wait_for_times(const ChildProcess& child, const std::string& part, int count) {
  wait_until([&] { return occurrences(child.output(), part) >= count; }, kDeadline,
             std::to_string(count) + " times: " + part);
}

}  // namespace

TEST_CASE("a halt that comes again is told again, and progress is told while it lasts") {
  Site site;
  site.pay(0, "bad", "a", "\"no number\"");
  const auto child =
      site.start({"--set", "failures.max_attempts=1", "--set", "log.progress_interval=200ms"});
  wait_for_times(*child, " partition_halted ", 1);
  wait_for_times(*child, " partitions=1 halted=1 ", 3);
  REQUIRE(site.run({"partitions", "resume", "--topic", site.topic, "--partition", "0"}).code == 0);
  wait_for_times(*child, " partition_halted ", 2);
  // Nothing is processed that would tell the lag.
  site.pay_many(0, "later", 20);
  child->wait_for_output(" lag=21 ", kDeadline);
  child->kill(SIGTERM);
  CHECK(child->wait(kDeadline) == ExitStatus{.code = 0, .signal = {}});
}

TEST_CASE("the wait for the group after a process was killed is told, and progress meanwhile") {
  Site site;
  site.pay_many(0, "e", 1);
  site.kafka_lines = "session_timeout = \"12s\"\n";
  {
    const auto child = site.start();
    site.wait_for_stored(0, 0);
    child->kill(SIGKILL);
    child->wait(kDeadline);
  }
  site.pay_many(0, "later", 1);
  const auto child = site.start({"--set", "log.progress_interval=500ms"});
  child->wait_for_output("waiting for partitions of group " + site.group, kDeadline);
  CHECK_THAT(child->output(), ContainsSubstring("kafka.session_timeout (12 s)") &&
                                  ContainsSubstring("kafka.group_instance_id"));
  CHECK(occurrences(child->output(), " partitions=0 ") > 1);
  site.wait_for_stored(0, 1);
  child->kill(SIGTERM);
  CHECK(child->wait(kDeadline) == ExitStatus{.code = 0, .signal = {}});
}

TEST_CASE("a broker that shares out no partitions itself is met with the option to change") {
  KafkaBroker broker({.settings = {"group.coordinator.rebalance.protocols=classic"}});
  Site site(broker, PostgresServer::shared());
  site.kafka_lines = "group_protocol = \"consumer\"\n";
  const auto check = site.run({"check"});
  INFO(check.out << check.err);
  CHECK(check.code == 1);
  CHECK_THAT(check.out, ContainsSubstring("group.coordinator.rebalance.protocols = classic") &&
                            ContainsSubstring("set kafka.group_protocol = \"classic\""));
  const auto child = site.start();
  child->wait_for_output("kafka.group_protocol = \"classic\"", kDeadline);
  CHECK(child->wait(kDeadline).code != 0);
}
