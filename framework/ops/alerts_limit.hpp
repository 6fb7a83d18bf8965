#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>

#include "ops/alerts_message.hpp"
#include "pawl/topic_partition.hpp"

namespace pawl::ops {

/// Decides which alerts are sent, and when: of one kind about one partition or handler not more
/// often than the interval, a halt once and not each time that somebody finds it again, an outage
/// when it lasts. Holds one alert for each kind and place at most. Has no clock and no lock.
class AlertLimit {
 public:
  using Clock = std::chrono::steady_clock;

  AlertLimit(std::chrono::milliseconds min_interval, std::chrono::milliseconds unreachable_after)
      : min_interval_(min_interval), unreachable_after_(unreachable_after) {}

  /// One more alert. While another of its kind and place waits, it is only counted.
  void add(Alert alert, Clock::time_point now);
  /// A halt; nothing when the partition was known to stand for the same reason.
  void add_halt(Alert alert, Clock::time_point now);
  /// The partition works again: its next halt is a new one.
  void runs(const TopicPartition& partition);
  /// The end of a matter, at the same place as its beginning, whose kind is `began`. It waits for
  /// no interval; where the beginning was still held back, neither is sent, unless an earlier one
  /// was.
  void add_end(Alert alert, std::string_view began, Clock::time_point now);

  /// Servers that may be unreachable. An outage that was not reported ends without an alert; an
  /// alert has the latest `why`. `remote`: the endpoint of kRemoteService.
  enum class Server { kDatabase, kKafka, kRedis, kRemoteService };
  void lost(Server server, std::string why, Clock::time_point now, std::string remote = {});
  void back(Server server, std::int64_t now_ms, Clock::time_point now, std::string remote = {});

  /// A partition waits for a lock; nothing while it is known to.
  void add_blocked(Alert alert, Clock::time_point now);
  /// It waits no more.
  void add_unblocked(Alert alert, Clock::time_point now);

  /// The alert to send now; it counts as sent. More than ten that wait to say the same kind of
  /// thing are told as one, which counts the others.
  std::optional<Alert> take(std::int64_t now_ms, Clock::time_point now);
  /// What waits for its interval is due now: whoever holds it ends.
  void hurry() { min_interval_ = std::chrono::milliseconds{0}; }
  /// Alerts that wait, with those that are only counted.
  [[nodiscard]] std::uint64_t waiting() const;
  /// When take() may have something; nothing to wait for: max().
  [[nodiscard]] Clock::time_point next_due() const;

 private:
  /// Kind; handler, remote service, or topic; partition.
  using Place = std::tuple<std::string_view, std::string, std::int32_t>;

  struct Entry {
    std::optional<Alert> waiting;
    std::uint64_t suppressed = 0;
    std::uint64_t order = 0;  ///< of waiting
    std::optional<Clock::time_point> sent;
    bool open = false;  ///< it was sent, and the end of it was not
  };

  struct Outage {
    std::optional<Clock::time_point> since;
    std::string why;
    bool told = false;  ///< an alert about it waits or was sent
  };

  static Place place_of(const Alert& alert);
  void notice_outages(std::int64_t now_ms, Clock::time_point now);
  [[nodiscard]] Clock::time_point due(const Entry& entry) const;
  Alert mark_sent(Entry& entry, Clock::time_point now);
  void forget_old(Clock::time_point now);

  std::chrono::milliseconds min_interval_;
  std::chrono::milliseconds unreachable_after_;
  std::map<Place, Entry> entries_;
  std::map<std::string_view, std::uint64_t> overflow_;  ///< by kind, when there are too many places
  std::map<TopicPartition, std::string> halts_;         ///< those that stand, by reason
  std::set<TopicPartition> blocked_;
  std::map<std::pair<Server, std::string>, Outage> outages_;  ///< by server and remote service
  std::uint64_t order_ = 0;
};

}  // namespace pawl::ops
