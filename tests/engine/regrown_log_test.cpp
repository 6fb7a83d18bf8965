// A partition whose log lost its end and has grown again: behind the stored offset stand other
// records than those that were processed. Only leader epochs (KIP-320) tell.
#include <fmt/format.h>
#include <signal.h>

#include <pawl/consumer.hpp>

#include "payments_world.hpp"
#include "prelude.hpp"
#include "process_watch.hpp"

namespace {

constexpr int kKept = 91;  // records that the log still has when it is put back
constexpr int kLost = 10;  // and those that it has not
constexpr int kRegrown = 60;

/// One consumer in each mode, with a topic of its own, and one broker for all of them whose disk
/// may go back in time.
class Consumers {
 public:
  Consumers() {
    for (const auto& mode : modes()) {
      auto& world = *worlds.emplace_back(std::make_unique<PaymentsWorld>(1, nullptr, &broker));
      world.use(mode);
    }
  }

  void produce(int each) {
    for (const auto& world : worlds)
      world->produce_to_each_partition(each);
  }

  void start() {
    for (const auto& world : worlds)
      processes_.push_back(world->start());
  }
  void kill(int signal) {
    for (const auto& process : processes_) {
      process->kill(signal);
      if (signal == SIGSTOP)
        pawl::test::wait_until_stopped(*process, 60s);
    }
  }
  /// Ends them; each says goodbye as if nothing was the matter.
  void stop() {
    kill(SIGTERM);
    for (const auto& process : processes_) {
      const auto status = process->wait(60s);
      INFO(process->output());
      REQUIRE(status.success());
    }
    processes_.clear();
  }
  [[nodiscard]] std::string output(std::size_t index) const {
    return index < processes_.size() ? processes_[index]->output() : std::string();
  }

  void wait_for_stored(std::int64_t offset) {
    for (std::size_t i = 0; i < worlds.size(); ++i) {
      INFO(modes()[i].name << "\n" << output(i));
      worlds[i]->wait_for_stored(0, offset);
    }
  }

  /// The logs lose what comes behind the kept records, and grow again.
  void keep_disks() {
    broker.stop();
    for (const auto& world : worlds)
      broker.save_log(world->topic(), 0);
    broker.start();
  }
  void put_back_disks() {
    broker.stop();
    for (const auto& world : worlds)
      broker.restore_log(world->topic(), 0);
    broker.start();
    produce(kRegrown);
  }

  /// Halted where it stood, with all that an operator needs to know.
  void require_halts(bool may_see_it_short) {
    for (std::size_t i = 0; i < worlds.size(); ++i) {
      auto& world = *worlds[i];
      INFO(modes()[i].name);
      try {
        world.wait_for_state(0, "halted");
      } catch (const pawl::testing::Timeout& timeout) {
        FAIL(timeout.what() << "\nstored " << world.in_register(0, "last_processed_offset") << "\n"
                            << output(i));
      }
      REQUIRE(world.in_register(0, "halt_kind") == "position");
      REQUIRE(world.stored(0) == kKept + kLost - 1);
      const auto facts = world.in_register(0, kHaltFacts);
      INFO(facts);
      const auto has = [&](const std::string& text) {
        return facts.find(text) != std::string::npos;
      };
      const auto parameter = [&](const std::string& name) {
        return world.in_register(0, fmt::format("halt_parameters ->> '{}'", name));
      };
      REQUIRE(parameter("next_offset") == std::to_string(kKept + kLost));
      // A process that checks before the log has regrown sees that it ends too early.
      const bool regrown =
          has("record_replaced") &&
          parameter("stored_leader_epoch") == world.in_register(0, "leader_epoch") &&
          has(fmt::format("end offset is {}", kKept));
      const bool shorter = has("log_truncated") && parameter("log_end") == std::to_string(kKept);
      REQUIRE((regrown || (may_see_it_short && shorter)));
      REQUIRE(world.number("SELECT count(*) FROM ledger") == kKept + kLost);
    }
  }

  /// What `pawl offsets set --to 91` does; from there on everything is applied.
  void require_recovery() {
    for (std::size_t i = 0; i < worlds.size(); ++i) {
      auto& world = *worlds[i];
      INFO(modes()[i].name);
      world.execute(
          fmt::format("SELECT pawl.operator_change(consumer_id, topic, partition, {}, 'running',"
                      " 'set', 'test') FROM pawl.processed_kafka_offsets",
                      kKept - 1));
      world.drain();
      // The register counts from where the operator put it; the effects know no such thing.
      for (const auto* count : {"SELECT count(*) FROM ledger", "SELECT sum(entries) FROM accounts",
                                "SELECT count(*) FROM pawl.idempotency_keys"})
        REQUIRE(world.number(count) == world.produced());
      REQUIRE(world.in_register(0, "state") == "running");
    }
  }

  pawl::testing::KafkaBroker broker;
  std::vector<std::unique_ptr<PaymentsWorld>> worlds;

 private:
  std::vector<std::unique_ptr<ChildProcess>> processes_;
};

}  // namespace

TEST_CASE("a log that was truncated and has regrown while nobody ran halts in every mode") {
  Consumers consumers;
  consumers.produce(kKept);
  consumers.keep_disks();
  consumers.produce(kLost);
  for (const auto& world : consumers.worlds)
    world->drain();
  consumers.put_back_disks();

  for (const auto& world : consumers.worlds) {
    const auto process = world->start({.arguments = {"--drain"}});
    const auto status = process->wait(120s);
    INFO(process->output());
    REQUIRE(status.code == static_cast<int>(pawl::RunResult::kHaltedPartitions));
  }
  consumers.require_halts(false);
  consumers.require_recovery();
}

TEST_CASE("a log that is truncated and regrows under a running consumer halts in every mode") {
  // Stopped meanwhile, a consumer does not see anything but the regrown log.
  const bool faster = GENERATE(false, true);
  INFO((faster ? "faster than the next fetch" : "while it fetches"));
  Consumers consumers;
  consumers.produce(kKept);
  consumers.keep_disks();
  consumers.produce(kLost);
  consumers.start();
  consumers.wait_for_stored(kKept + kLost - 1);
  if (faster)
    consumers.kill(SIGSTOP);
  consumers.put_back_disks();
  if (faster)
    consumers.kill(SIGCONT);

  consumers.require_halts(!faster);
  consumers.stop();
  consumers.require_recovery();
}

TEST_CASE("new leader epochs alone halt nothing, also where a log ends in control records") {
  pawl::testing::KafkaBroker broker;
  PaymentsWorld world(1, nullptr, &broker);
  const auto new_producer = [&] {
    return std::make_unique<KafkaProducer>(broker.bootstrap(), world.topic() + "-producer");
  };
  auto transactions = new_producer();
  const bool running = GENERATE(false, true);
  INFO((running ? "while running" : "between runs"));
  std::unique_ptr<ChildProcess> process;
  if (running)
    process = world.start();
  int messages = 0;
  std::int64_t end = 0;
  std::string epoch;
  const auto catch_up = [&] {
    if (!running)
      world.drain();
    INFO((running ? process->output() : std::string()));
    world.wait_for_stored(0, end - 1);
    REQUIRE(world.in_register(0, "state") == "running");
    REQUIRE(world.number("SELECT count(*) FROM ledger") == messages);
    // Of the record at the stored offset, be it a control record.
    const auto now = world.in_register(0, "leader_epoch");
    if (!epoch.empty())
      REQUIRE(std::stoi(now) > std::stoi(epoch));
    epoch = now;
  };
  const auto send = [&](const std::string& event_id) {
    pawl::testing::Record record;
    record.value = R"({"account":"acc-1","amount":1})";
    record.headers = {{"event-id", event_id}};
    record.partition = 0;
    transactions->begin();
    transactions->send(world.topic(), record);
    transactions->flush();
    ++end;
  };
  for (int round = 0; round < 2; ++round) {
    // The record and the marker of its transaction's end are of two epochs: the next producer of
    // this name aborts what the one before left open.
    send("aborted");
    broker.restart();
    transactions = new_producer();
    ++end;
    wait_until([&] { return broker.last_stable_offset(world.topic(), 0) == end; }, 60s,
               "the transaction's marker");
    catch_up();
    // Nothing but a new leader.
    broker.restart();
    send(fmt::format("t-{}", messages++));
    transactions->commit();
    ++end;
    wait_until([&] { return broker.last_stable_offset(world.topic(), 0) == end; }, 60s,
               "the transaction's marker");
    catch_up();
  }
  if (running) {
    process->kill(SIGTERM);
    REQUIRE(process->wait(60s).success());
  }
}
