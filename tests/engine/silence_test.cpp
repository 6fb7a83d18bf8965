// Consumer::silent_for(): by what a watchdog knows that the process goes on.
#include <atomic>
#include <condition_variable>
#include <fstream>
#include <mutex>
#include <pawl/pawl.hpp>
#include <thread>

#include "payments_world.hpp"
#include "prelude.hpp"

namespace {

/// Keeps the monitor's thread, which tells the ends of logs, while it is asked to.
class Keeper final : public pawl::Observer {
 public:
  void on_event(const pawl::Event& event) noexcept override {
    if (event.step != pawl::Step::kLogEnd)
      return;
    std::unique_lock lock(mutex_);
    ++ends_;
    changed_.wait(lock, [this] { return !keeps_; });
  }

  void keep(bool keeps) {
    const std::scoped_lock lock(mutex_);
    keeps_ = keeps;
    changed_.notify_all();
  }
  int ends() {
    const std::scoped_lock lock(mutex_);
    return ends_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool keeps_ = false;
  int ends_ = 0;
};

}  // namespace

TEST_CASE("a consumer is silent while one of its watching threads stands, and only then") {
  PaymentsWorld world(1);
  const TempDir folder("silence");
  const auto config = folder.path() / "pawl.toml";
  std::ofstream(config) << world.config();
  const auto keeper = std::make_shared<Keeper>();
  pawl::Consumer consumer(pawl::load_config(config.string()), {}, {keeper});
  CHECK(consumer.silent_for() == 0ms);
  CHECK_FALSE(consumer.unready().empty());

  std::thread running([&] { consumer.run(); });
  world.produce(10);
  world.wait_until_all_processed();
  CHECK(consumer.unready() == "");
  wait_until([&] { return keeper->ends() > 0; }, 60s, "the monitor to ask for the log's end");
  keeper->keep(true);
  world.produce(10);
  wait_until([&] { return consumer.silent_for() > 3s; }, 60s, "the monitor's silence");
  // Messages go on all the same.
  world.wait_until_all_processed();
  keeper->keep(false);
  wait_until([&] { return consumer.silent_for() < 1s; }, 60s, "the monitor's next round");

  consumer.stop();
  running.join();
  CHECK(consumer.silent_for() == 0ms);
  CHECK_FALSE(consumer.unready().empty());
}
