#pragma once

#include <chrono>
#include <compare>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "engine/backoff.hpp"
#include "pawl/message.hpp"
#include "pawl/topic_partition.hpp"

namespace pawl::engine {

/// A call that did nothing, for a reason that may be its endpoint's.
struct FailedCall {
  bool by_status = false;  ///< one of the handler's `outage`; false: no connection could be made
  /// Another call to the endpoint has succeeded since the message first failed by status.
  bool others_succeed = false;
  std::chrono::milliseconds failing_for{0};  ///< since the message first failed by status
  std::chrono::milliseconds retry_for{0};    ///< of the handler
};
/// What is at fault, and what becomes of the message.
enum class OutageVerdict {
  kServiceAway,     ///< the service: its messages wait, one at a time probes; no attempt counts
  kMessageWaits,    ///< perhaps the message: it waits alone, and no attempt counts
  kMessageAtFault,  ///< the message: the attempt counts
};
[[nodiscard]] OutageVerdict judge(const FailedCall& call);

/// Which remote services this process cannot use, and which messages wait for them. A service is
/// unreachable until a call gets a response. Until then one call at a time probes it, with growing
/// pauses, and all others wait. Any thread.
class RemoteServices : public std::enable_shared_from_this<RemoteServices> {
 public:
  using Clock = std::chrono::steady_clock;
  using Milliseconds = std::chrono::milliseconds;

  static constexpr Milliseconds kFirstPause{500};
  static constexpr Milliseconds kLongestPause{10000};

  /// The place of a message in Kafka.
  struct Place {
    TopicPartition partition;
    std::int64_t offset = -1;
    auto operator<=>(const Place&) const = default;
  };

  /// The permission to call a service, until responded() or failed() reports the result. A turn
  /// that is destroyed without either has not called.
  class Turn {
   public:
    /// For a call whose service is not known: reports nothing.
    Turn() = default;
    ~Turn() { end(); }
    Turn(Turn&& other) noexcept;
    Turn& operator=(Turn&& other) noexcept;
    Turn(const Turn&) = delete;
    Turn& operator=(const Turn&) = delete;

    /// The service has responded; `succeeded`: the call is done.
    void responded(bool succeeded);
    /// After how long the message may ask again; nullopt: it is at fault, or no service is known.
    /// `retry_after`: the service's Retry-After; 0: none.
    [[nodiscard]] std::optional<Milliseconds> failed(FailedCall call, const std::string& why,
                                                     Milliseconds retry_after,
                                                     Clock::time_point now = Clock::now());

   private:
    friend class RemoteServices;
    Turn(std::shared_ptr<RemoteServices> services, std::string remote, Place place, bool probes);
    void end() noexcept;

    std::shared_ptr<RemoteServices> services_;  ///< null: nothing is to be reported
    std::string remote_;
    Place place_;
    bool probes_ = false;
  };

  /// The turn if the message may call the service now; otherwise after how long it may ask again.
  [[nodiscard]] std::variant<Turn, Milliseconds> ask(const std::string& remote, const Place& place,
                                                     Clock::time_point now = Clock::now());

  /// A service that is unreachable.
  struct Away {
    std::string remote;
    Timestamp since;
    std::string why;
    std::map<TopicPartition, std::int64_t> waiting;  ///< messages that have asked for it
  };
  /// All of them. Forgets services that no message waits for any more.
  [[nodiscard]] std::vector<Away> away(Clock::time_point now = Clock::now());

 private:
  struct Waiting {
    /// When the message asks again at the latest.
    Clock::time_point until{};
    /// When the message first failed by status; nullopt: it has not.
    std::optional<Clock::time_point> failing_since;
    std::uint64_t succeeded_before = 0;
    Backoff pause{kFirstPause, kLongestPause};
  };
  struct Service {
    std::optional<Timestamp> away_since;
    std::string why;
    bool probed = false;  ///< a probe is in progress
    Clock::time_point next_probe{};
    Backoff pause{kFirstPause, kLongestPause};
    std::optional<Place> failed_last;
    std::uint64_t succeeded = 0;  ///< calls
    std::map<Place, Waiting> waiting;
  };

  [[nodiscard]] static Milliseconds until_probe(const Service& service, Clock::time_point now);
  [[nodiscard]] static bool must_yield(const Service& service, const Place& place,
                                       Clock::time_point now);
  std::optional<Milliseconds> failed(const Turn& turn, FailedCall call, const std::string& why,
                                     Milliseconds retry_after, Clock::time_point now);
  void responded(const Turn& turn, bool succeeded);
  void not_called(const Turn& turn);

  std::mutex mutex_;
  std::map<std::string, Service> services_;  // guarded by mutex_
};

}  // namespace pawl::engine
