#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "pawl/observer.hpp"

namespace pawl::ops {

/// A server that cannot be used now.
struct Unreachable {
  std::string_view server;         ///< "PostgreSQL"
  std::string_view field;          ///< "database_unreachable_s"
  std::string_view repeats_field;  ///< "database_unreachable_repeats"
  std::chrono::seconds lasts{0};
  std::uint64_t repeats = 0;  ///< reports of the outage that were not logged
  std::string cause;          ///< the latest one
};

/// Decides which events of an outage of PostgreSQL, Kafka, or Redis are logged: the first one, a
/// later one only if an operator must act differently, and one when the outage has ended. Others
/// are counted. The same rules apply at the start, during a run, and in a relay. Any thread.
///
///   Outages outages(1s);
///   if (outages.note(event, Clock::now()))
///     log(event);
class Outages {
 public:
  using Clock = std::chrono::steady_clock;

  /// `quiet`: an outage has ended if no user of the server has lost it again for that long. Several
  /// workers notice one outage at different times.
  explicit Outages(Clock::duration quiet) : quiet_(quiet) {}

  /// True: the event is logged as a warning. Always false for events that are not about an outage.
  bool note(const Event& event, Clock::time_point now);
  /// The outages in progress.
  [[nodiscard]] std::vector<Unreachable> standing(Clock::time_point now) const;

  struct Ended {
    Step step;  ///< of the event that reports it: kDatabaseReachable
    Clock::duration lasted;
  };
  /// The outages that have ended. Each is returned once. `all`: also if the quiet is not over.
  [[nodiscard]] std::vector<Ended> take_ended(Clock::time_point now, bool all = false);

 private:
  struct Outage {
    std::optional<Clock::time_point> since;
    std::optional<Clock::time_point> back;  ///< responded since, but the quiet is not over
    std::string cause;
    std::set<std::string> logged;  ///< what the logged causes require an operator to fix
    std::uint64_t repeats = 0;

    [[nodiscard]] bool stands() const { return since && !back; }
  };
  /// Whether a report begins an outage that is not in progress, and whether its cause is of now.
  struct Report {
    bool begins = true;
    bool is_latest = true;
  };

  bool lost(std::size_t server, std::string_view cause, Clock::time_point now, Report report);
  /// The server responds; take_ended() reports it.
  void found(std::size_t server, Clock::time_point now);

  const Clock::duration quiet_;
  mutable std::mutex mutex_;
  std::array<Outage, 3> outages_;   // guarded by mutex_; PostgreSQL, Kafka, Redis
  bool workers_connected_ = false;  // guarded by mutex_
};

}  // namespace pawl::ops
