#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "engine/observers.hpp"
#include "engine/reachability.hpp"
#include "leases/store/key_leases.hpp"
#include "pawl/options.hpp"

namespace pawl::engine {

/// A clock that goes on while the machine sleeps (CLOCK_BOOTTIME), as the server's does.
struct BootClock {
  using duration = std::chrono::nanoseconds;
  using rep = duration::rep;
  using period = duration::period;
  using time_point = std::chrono::time_point<BootClock>;
  static constexpr bool is_steady = true;
  [[nodiscard]] static time_point now() noexcept;
};

/// A lease that a call runs under. As long as it lives its keeper extends it. Any thread.
class HeldLease {
 public:
  HeldLease(ledger::KeyLease lease, BootClock::time_point safe_until)
      : lease_(std::move(lease)), safe_until_(safe_until) {}

  [[nodiscard]] const ledger::KeyLease& lease() const { return lease_; }
  /// Set at the deadline of the call, when the lease is lost, or when all calls are to end.
  [[nodiscard]] std::stop_token stop_token() const { return stop_.get_token(); }

 private:
  friend class LeaseKeeper;

  const ledger::KeyLease lease_;
  std::stop_source stop_;
  // Guarded by the keeper's mutex:
  BootClock::time_point safe_until_;  ///< up to then no other can have taken it
  std::chrono::steady_clock::time_point deadline_ = std::chrono::steady_clock::time_point::max();
  BootClock::time_point extended_until_ = BootClock::time_point::max();
  bool lost_ = false;
  bool told_ = false;  ///< that it goes on behind its deadline
};

/// Extends the leases of this process, all in one statement, gives back those that were left, and
/// tells calls to end whose lease is lost or cannot be extended in time. Has a session and a thread
/// for that, and one that looks at deadlines and waits for nobody; made before the first lease is
/// asked for. Any thread.
class LeaseKeeper {
 public:
  LeaseKeeper(const Options& options, const Observers& observers,
              std::shared_ptr<const ledger::KeyLeases> leases, std::string owner);
  ~LeaseKeeper();
  LeaseKeeper(const LeaseKeeper&) = delete;
  LeaseKeeper& operator=(const LeaseKeeper&) = delete;

  /// A lease to ask for, under the name of this process and a new token.
  [[nodiscard]] ledger::KeyLease propose(ledger::Scope scope, std::string key);
  /// It was given. `asked_at`: before the request was sent.
  [[nodiscard]] std::shared_ptr<HeldLease> hold(ledger::KeyLease lease,
                                                BootClock::time_point asked_at);
  /// The call begins now, and is told to end then. False: it must not begin.
  [[nodiscard]] bool begin(HeldLease& held, std::chrono::steady_clock::time_point deadline);
  /// The call has ended; for its outcome to be stored there is a bounded time.
  void ended(HeldLease& held);
  /// That time is over: the lease is extended no more.
  [[nodiscard]] bool is_over(const HeldLease& held);
  /// No attempt of this process has that lease any more, nor asks for it: it is given back as soon
  /// as it can be, for its key's next attempt.
  void leave(ledger::LeftLease lease) noexcept;
  /// Of what is left: KeyLeases::keeps_responses().
  [[nodiscard]] bool keeps_responses() const { return leases_->keeps_responses(); }
  /// Calls that run, or whose outcome is not stored yet.
  [[nodiscard]] std::size_t held() { return live().size(); }
  [[nodiscard]] bool holds() { return held() != 0; }
  /// Tells all calls to end, also those to come. Whether there were any.
  bool stop_calls();

  [[nodiscard]] std::chrono::milliseconds time() const { return options_.calls.lease_time; }
  /// False: none can be had now, and somebody else asks whether that has changed.
  [[nodiscard]] bool may_ask();
  /// Whether the call was told to end because its lease could not be kept, and not at its deadline.
  [[nodiscard]] bool was_cut(const HeldLease& held);
  /// Whether leases can be had, where they are not PostgreSQL's.
  [[nodiscard]] Reachability& reachable() { return reachable_; }

 private:
  using Held = std::vector<std::shared_ptr<HeldLease>>;
  struct Left {
    ledger::LeftLease lease;
    BootClock::time_point until;      ///< nothing can come of it any more
    BootClock::time_point due{};      ///< when it is looked for
    std::chrono::nanoseconds wait{};  ///< until it is looked for again
  };

  [[nodiscard]] bool wait_for_tick();
  [[nodiscard]] bool wait_for_deadline();
  void run();
  void watch();
  [[nodiscard]] Held live();
  void check_deadlines(const Held& held);
  void extend(const Held& held);
  void give_back_left();
  void warn(std::string why);

  const Options& options_;
  const Observers& observers_;
  Reachability reachable_{observers_, Step::kRedisUnreachable, Step::kRedisReachable};
  const std::string owner_;
  const std::shared_ptr<const ledger::KeyLeases> leases_;
  std::atomic<bool> unwanted_{false};                ///< whoever connects is to stop
  std::unique_ptr<ledger::LeaseExtender> extender_;  ///< the thread's
  std::string warned_of_;                            ///< the thread's
  BootClock::time_point next_try_{};                 ///< the thread's
  BootClock::time_point next_give_back_{};           ///< the thread's

  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::weak_ptr<HeldLease>> held_;  // guarded by mutex_
  std::list<Left> left_;                        // guarded by mutex_
  bool calls_stopped_ = false;                  // guarded by mutex_
  BootClock::time_point next_ask_{};            // guarded by mutex_
  bool ending_ = false;                         // guarded by mutex_
  std::thread thread_;                          // made under mutex_, as the next one
  std::thread watch_;
};

}  // namespace pawl::engine
