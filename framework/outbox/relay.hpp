#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <thread>

#include "engine/backoff.hpp"
#include "engine/bell.hpp"
#include "engine/reachability.hpp"
#include "outbox/lane.hpp"
#include "outbox/store/view.hpp"

namespace pawl::engine {

/// When a relay takes its first lane.
enum class RelayBegins {
  kAtOnce,
  /// Once its bell rings, or messages wait in the database that nobody publishes. Until then it
  /// needs nothing of Kafka.
  kOnceNeeded,
};

/// Whether the servers respond; null: somebody else reports that.
struct RelayServers {
  Reachability* database = nullptr;
  Reachability* kafka = nullptr;
};

/// Publishes this process's share of the outbox: takes lanes, extends them while they work, gives
/// some back where there are others to take them. Its thread begins with the object.
class OutboxRelay {
 public:
  using Clock = std::chrono::steady_clock;

  /// `options` and `observers` outlive it. `owner`: this process, as elsewhere in the database.
  /// `bell`: rung when there is something to publish; messages of others are found all the same.
  OutboxRelay(const Options& options, const Observers& observers, std::string owner,
              std::shared_ptr<Bell> bell = std::make_shared<Bell>(),
              RelayBegins begins = RelayBegins::kAtOnce, RelayServers servers = {});
  /// Ends behind the batches in hand, and gives the lanes back.
  ~OutboxRelay();
  OutboxRelay(const OutboxRelay&) = delete;
  OutboxRelay& operator=(const OutboxRelay&) = delete;

  /// Begins to end. From any thread.
  void stop();
  /// Begins to end behind what waits now, as far as there is time until `deadline`. From any
  /// thread.
  void finish(Clock::time_point deadline);

 private:
  void run();
  [[nodiscard]] bool wait_until_needed();
  [[nodiscard]] bool finished();
  [[nodiscard]] bool is_needed(bool last);
  void relay();
  [[nodiscard]] bool tick();
  void share_lanes();
  [[nodiscard]] ledger::RelayNews news();
  [[nodiscard]] std::string left_out();
  void tell_differing(const std::string& owners);
  void connect();
  [[nodiscard]] std::string ask_cluster(const kafka::Client& kafka) const;
  void require_state_topic(const kafka::Client& kafka) const;
  void reap();
  void put_off();
  void note_failed(const std::exception& error);
  [[nodiscard]] bool kafka_serves();
  [[nodiscard]] bool kafka_is_away() const;
  void commit_nothing() const;
  void leave();
  void warn_once(const std::string& text, std::string_view sqlstate = {});

  const Options& options_;
  const Observers& observers_;
  const std::string owner_;
  const std::shared_ptr<Bell> bell_;
  const RelayBegins begins_;
  const RelayServers servers_;
  const ledger::OutboxView view_;
  std::optional<OutboxSite> site_;  ///< once database and Kafka have answered
  std::unique_ptr<postgres::Session> session_;
  std::list<std::unique_ptr<OutboxLane>> lanes_;
  std::map<std::int32_t, UnwritablePartitions> unwritable_;  ///< of lanes that have ended
  Backoff backoff_;
  Clock::time_point take_not_before_{};  ///< a lane failed: another try comes later
  std::string tick_problem_;             ///< why no lane can be taken; empty: nothing is known
  std::string lane_problem_;             ///< why a lane failed, until one works
  bool check_kafka_ = false;             ///< a lane failed since Kafka was looked at
  std::string differing_;                ///< those that have been told
  std::string left_out_;                 ///< what has been told of partitions
  std::string last_warning_;
  std::atomic<bool> finishing_{false};
  std::atomic<Clock::time_point> finish_by_{Clock::time_point::max()};
  std::optional<std::int64_t> finish_up_to_;  ///< the last message that waited when it began to end
  std::thread thread_;
};

}  // namespace pawl::engine
