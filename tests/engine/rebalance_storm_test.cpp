// Four processes, one of which joins or leaves every second, under constant production.
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <pqxx/pqxx>

#include "group_of_processes.hpp"
#include "payments_world.hpp"
#include "prelude.hpp"

using Clock = std::chrono::steady_clock;

namespace {

constexpr int kPartitions = 12;

/// Length of each storm: PAWL_STORM_SECONDS, else short enough for every day.
std::chrono::seconds storm_length() {
  const char* seconds = std::getenv("PAWL_STORM_SECONDS");
  return std::chrono::seconds(seconds != nullptr ? std::atoi(seconds) : 10);
}

/// Watches how long a partition that has something to do goes without moving.
class StallWatch {
 public:
  explicit StallWatch(const std::string& url)
      : connection_(url), moved_at_(kPartitions, Clock::now()) {
    stored_.resize(kPartitions, -1);
  }

  /// `produced` messages are in every partition.
  void look(std::int64_t produced) {
    pqxx::nontransaction tx(connection_);
    const auto now = Clock::now();
    for (const auto& row :
         tx.exec("SELECT partition, last_processed_offset FROM pawl.processed_kafka_offsets")) {
      const auto partition = row[0].as<std::size_t>();
      const auto stored = row[1].as<std::int64_t>();
      if (stored != stored_[partition] || stored + 1 >= produced)
        moved_at_[partition] = now;
      stored_[partition] = stored;
      longest_ = std::max(longest_, now - moved_at_[partition]);
    }
  }
  [[nodiscard]] std::chrono::milliseconds longest() const {
    return std::chrono::duration_cast<std::chrono::milliseconds>(longest_);
  }

 private:
  pqxx::connection connection_;
  std::vector<std::int64_t> stored_;
  std::vector<Clock::time_point> moved_at_;
  Clock::duration longest_{};
};

}  // namespace

TEST_CASE("a storm of joins and leaves costs neither a message nor a partition") {
  // Each protocol and each mode once at least.
  const auto [way, name] = GENERATE(table<std::size_t, std::string>({{0, "sql"},
                                                                     {1, "code"},
                                                                     {2, "flights"},
                                                                     {3, "sql batches"},
                                                                     {3, "flights, replayable"},
                                                                     {0, "sql batches, replayable"},
                                                                     {0, "code, replayable"},
                                                                     {2, "code batches"}}));
  const auto& protocol = kProtocols.at(way);
  INFO(protocol.name << ", " << name);
  PaymentsWorld world(kPartitions);
  world.set_kafka_options(protocol.config);
  world.use(pawl::test::mode(name));
  GroupOfProcesses group(world);
  for (int i = 0; i < 4; ++i)
    group.join();
  std::int64_t rounds = 0;
  const auto produce = [&] {
    world.produce_to_each_partition(5);
    rounds += 5;
  };
  produce();
  world.wait_until_all_processed(90s);

  StallWatch watch(world.url());
  const auto end = Clock::now() + storm_length();
  auto next_change = Clock::now();
  bool leaving = true;
  while (Clock::now() < end) {
    if (Clock::now() >= next_change) {
      next_change += 1s;
      // Nobody waits for the one that leaves: the next joins while it is on its way out.
      if (leaving) {
        group.send_away_oldest();
      } else {
        group.join();
      }
      leaving = !leaving;
    }
    produce();
    watch.look(rounds);
  }
  INFO(group.problems());
  world.wait_until_all_processed(90s);
  WARN(protocol.name << ", " << name << ": longest stall of a partition " << watch.longest().count()
                     << " ms, messages " << world.produced());
  REQUIRE(watch.longest() < 12s);
  group.leave_all();
  REQUIRE(world.imbalance() == "");
  REQUIRE(group.count("Seeking again") == 0);
}
