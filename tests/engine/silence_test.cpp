// Consumer::heartbeat_age(): by what a watchdog knows that the process goes on.
#include <condition_variable>
#include <fstream>
#include <mutex>
#include <pawl/pawl.hpp>
#include <thread>

#include "payments_world.hpp"
#include "prelude.hpp"

namespace {

/// Keeps the monitor's thread, which tells the ends of logs that nothing is fetched of, while it is
/// asked to.
class Keeper final : public pawl::Observer {
 public:
  void on_event(const pawl::Event& event) noexcept override {
    if (event.step != pawl::Step::kLogEndChanged)
      return;
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return !keeps_; });
  }

  void keep(bool keeps) {
    const std::scoped_lock lock(mutex_);
    keeps_ = keeps;
    changed_.notify_all();
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool keeps_ = false;
};

/// A consumer that runs beside the test.
class Running {
 public:
  Running(pawl::Consumer& consumer, Keeper& keeper)
      : consumer_(consumer), keeper_(keeper), thread_([this] { consumer_.run(); }) {}
  ~Running() {
    keeper_.keep(false);
    consumer_.stop();
    thread_.join();
  }
  Running(const Running&) = delete;
  Running& operator=(const Running&) = delete;

 private:
  pawl::Consumer& consumer_;
  Keeper& keeper_;
  std::thread thread_;
};

}  // namespace

TEST_CASE("a consumer is silent while one of its watching threads stands, and only then") {
  PaymentsWorld world(2);
  const TempDir folder("silence");
  const auto config = folder.path() / "pawl.toml";
  std::ofstream(config) << world.config();
  const auto keeper = std::make_shared<Keeper>();
  pawl::Consumer consumer(pawl::load_config(config, {"failures.max_attempts=1"}), {}, {keeper});
  CHECK(consumer.heartbeat_age() == 0ms);
  CHECK_FALSE(consumer.not_ready_reason().empty());
  {
    const Running running(consumer, *keeper);
    world.produce_record({.key = "k", .value = "not a payment", .partition = 0});
    world.wait_for_state(0, "halted");
    CHECK(consumer.not_ready_reason() == "");
    // A halted partition is no silence.
    wait_until([&] { return consumer.heartbeat_age() < 1s; }, 60s, "the monitor's next round");

    keeper->keep(true);
    world.produce_record({.key = "k", .value = "not a payment", .partition = 0});
    wait_until([&] { return consumer.heartbeat_age() > 3s; }, 60s, "the monitor's silence");
    // Messages go on all the same.
    world.produce_one("goes on", 1, 1);
    world.wait_for_stored(1, 0);
    keeper->keep(false);
    wait_until([&] { return consumer.heartbeat_age() < 1s; }, 60s, "the monitor's next round");
  }
  CHECK(consumer.heartbeat_age() == 0ms);
  CHECK_FALSE(consumer.not_ready_reason().empty());
}
