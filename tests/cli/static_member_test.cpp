// Static members (KIP-345): Kafka answers one that comes back by the assignment of before.
#include <csignal>

#include "prelude.hpp"
#include "site.hpp"

namespace {

void wait_for_stored(const Site& site, int partition, long offset, const ChildProcess& process) {
  try {
    site.wait_for_stored(partition, offset);
  } catch (const Timeout& late) {
    FAIL(late.what() << '\n' << process.output());
  }
}

void stop(ChildProcess& process) {
  process.kill(SIGTERM);
  CHECK(process.wait(kDeadline).code == 0);
}

std::string kafka_lines(const std::string& assignor) {
  // Nobody is missed within the test.
  return fmt::format("assignor = \"{}\"\ngroup_instance_id = \"one\"\nsession_timeout = \"45s\"\n",
                     assignor);
}

}  // namespace

TEST_CASE("a topic that a reload adds is consumed by a static member") {
  Site site;
  const auto* assignor = GENERATE("cooperative-sticky", "range");
  INFO(assignor);
  site.kafka_lines = kafka_lines(assignor);
  const TempDir folder("static");
  const auto config = site.config();
  ChildProcess child(PAWL_PROGRAM, {"run", "--config", config.string()},
                     {.output = folder.path() / "output"});
  site.pay(0, "first", "a", "1");
  wait_for_stored(site, 0, 0, child);
  const auto added = KafkaBroker::shared().new_topic("added", 1);
  auto text = read_file(config);
  const auto topics = fmt::format("topics = [\"{}\"]", site.topic);
  REQUIRE(text.find(topics) != std::string::npos);
  text.replace(text.find(topics), topics.size(),
               fmt::format("topics = [\"{}\", \"{}\"]", site.topic, added));
  write_file(config, text);
  child.kill(SIGHUP);
  child.wait_for_output("gets its earlier assignment", kDeadline);
  CHECK_THAT(child.output(),
             ContainsSubstring(fmt::format("Kafka assigned {}[0] to no process", added)));
  const auto first = site.topic;
  site.topic = added;
  site.pay(0, "second", "a", "1");
  wait_for_stored(site, 0, 0, child);
  site.topic = first;
  site.pay(0, "third", "a", "1");
  wait_for_stored(site, 0, 1, child);
  stop(child);
  CHECK(site.sql("SELECT count(*) FROM ledger") == "3");
}

TEST_CASE("partitions that are added while a static member is away are consumed") {
  Site site(2);
  const auto* assignor = GENERATE("cooperative-sticky", "range");
  const bool drains = GENERATE(false, true);
  INFO(assignor << (drains ? ", --drain" : ""));
  site.kafka_lines = kafka_lines(assignor);
  auto& kafka = KafkaBroker::shared();
  // Beside one that stays, so that the one that comes back is not the group's leader; --drain
  // alone.
  std::unique_ptr<ChildProcess> stays;
  int members = 1;
  if (!drains) {
    stays = site.start({"--set", "kafka.group_instance_id=two"});
    wait_until([&] { return kafka.stable_members(site.group) == 1; }, kDeadline, "a first member");
    ++members;
  }
  auto first = site.start();
  wait_until([&] { return kafka.stable_members(site.group) == members; }, kDeadline, "all members");
  for (const int p : {0, 1}) {
    site.pay(p, "first-" + std::to_string(p), "a", "1");
    wait_for_stored(site, p, 0, *first);
  }
  stop(*first);
  kafka.add_partitions(site.topic, 4);
  for (const int p : {0, 1, 2, 3})
    site.pay(p, "second-" + std::to_string(p), "a", "1");
  if (drains) {
    const auto drained = site.run({"run", "--drain"});
    INFO(drained.out << drained.err);
    CHECK(drained.code == 0);
  } else {
    auto again = site.start();
    for (const int p : {0, 1, 2, 3})
      wait_for_stored(site, p, p < 2 ? 1 : 0, *again);
    stop(*again);
    stop(*stays);
  }
  CHECK(site.sql("SELECT count(*) FROM ledger") == "6");
}
