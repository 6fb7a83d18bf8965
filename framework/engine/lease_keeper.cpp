#include "engine/lease_keeper.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <ctime>
#include <random>
#include <utility>

#include "engine/failure.hpp"
#include "text/count.hpp"

namespace pawl::engine {
namespace {

using std::chrono::milliseconds;

/// How often the deadlines of calls are looked at, at least.
constexpr milliseconds kTick{100};
constexpr milliseconds kRetry{500};
/// How long a call that has ended keeps its key while its outcome cannot be stored. Whoever waits
/// for it goes on then, as after a crash.
constexpr std::chrono::minutes kStoringTime{5};

/// A call that goes on for so long after it was told to end holds its key for good.
constexpr std::chrono::seconds kGrace{10};

/// So long before its end a lease counts as lost: for the way of a call's last bytes, and clocks
/// that do not run alike.
milliseconds margin(milliseconds time) {
  return time / 10;
}

std::int64_t new_token() {
  thread_local std::mt19937_64 random{[] {
    std::random_device device;
    std::seed_seq seed{device(), device(), device(), device()};
    return std::mt19937_64(seed);
  }()};
  return static_cast<std::int64_t>(random() >> 1U);
}

}  // namespace

BootClock::time_point BootClock::now() noexcept {
  timespec time{};
  ::clock_gettime(CLOCK_BOOTTIME, &time);
  return time_point(std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec));
}

LeaseKeeper::LeaseKeeper(const Options& options, const Observers& observers,
                         std::shared_ptr<const ledger::KeyLeases> leases, std::string owner)
    : options_(options),
      observers_(observers),
      owner_(std::move(owner)),
      leases_(std::move(leases)),
      extender_(leases_->make_extender(unwanted_)) {}

LeaseKeeper::~LeaseKeeper() {
  {
    const std::scoped_lock lock(mutex_);
    ending_ = true;
  }
  unwanted_ = true;
  changed_.notify_all();
  if (thread_.joinable())
    thread_.join();
  if (watch_.joinable())
    watch_.join();
}

ledger::KeyLease LeaseKeeper::propose(ledger::Scope scope, std::string key) {
  {
    // Where the system has no thread to spare, no lease may be taken.
    const std::scoped_lock lock(mutex_);
    if (!watch_.joinable())
      watch_ = std::thread([this] { watch(); });
    if (!thread_.joinable())
      thread_ = std::thread([this] { run(); });
  }
  return {std::move(scope), std::move(key), owner_, new_token()};
}

std::shared_ptr<HeldLease> LeaseKeeper::hold(ledger::KeyLease lease,
                                             BootClock::time_point asked_at) {
  auto held = std::make_shared<HeldLease>(std::move(lease), asked_at + time() - margin(time()));
  const std::scoped_lock lock(mutex_);
  if (calls_stopped_)
    held->stop_.request_stop();
  held_.push_back(held);
  if (held_.size() == 1)
    changed_.notify_all();
  return held;
}

bool LeaseKeeper::begin(HeldLease& held, std::chrono::steady_clock::time_point deadline) {
  const std::scoped_lock lock(mutex_);
  held.deadline_ = deadline;
  return !held.lost_ && !held.stop_.stop_requested() && BootClock::now() < held.safe_until_;
}

bool LeaseKeeper::may_ask() {
  if (!reachable_.is_away())
    return true;
  const std::scoped_lock lock(mutex_);
  const auto now = BootClock::now();
  if (now < next_ask_)
    return false;
  next_ask_ = now + kRetry;
  return true;
}

bool LeaseKeeper::was_cut(const HeldLease& held) {
  const std::scoped_lock lock(mutex_);
  return held.stop_.stop_requested() && (held.lost_ || BootClock::now() >= held.safe_until_);
}

bool LeaseKeeper::is_over(const HeldLease& held) {
  const std::scoped_lock lock(mutex_);
  return BootClock::now() >= held.extended_until_;
}

void LeaseKeeper::ended(HeldLease& held) {
  const std::scoped_lock lock(mutex_);
  held.deadline_ = std::chrono::steady_clock::time_point::max();
  held.extended_until_ = BootClock::now() + kStoringTime;
}

bool LeaseKeeper::stop_calls() {
  {
    const std::scoped_lock lock(mutex_);
    calls_stopped_ = true;
  }
  const auto held = live();
  for (const auto& one : held)
    one->stop_.request_stop();
  return !held.empty();
}

/// Forgets those whose calls have ended.
LeaseKeeper::Held LeaseKeeper::live() {
  Held held;
  const std::scoped_lock lock(mutex_);
  std::erase_if(held_, [&held](const std::weak_ptr<HeldLease>& one) {
    auto found = one.lock();
    if (!found)
      return true;
    held.push_back(std::move(found));
    return false;
  });
  return held;
}

void LeaseKeeper::leave(ledger::LeftLease lease) noexcept {
  try {
    Left left{std::move(lease), BootClock::now() + std::max<milliseconds>(time(), kStoringTime)};
    left.wait = kRetry;
    const std::scoped_lock lock(mutex_);
    left_.push_back(std::move(left));
    changed_.notify_all();
  } catch (const std::exception&) {  // NOLINT(bugprone-empty-catch): it ends by itself
  }
}

/// While nothing is held or left there is nothing to do. False: it ends.
bool LeaseKeeper::wait_for_tick() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return ending_ || !held_.empty() || !left_.empty(); });
  return !changed_.wait_for(lock, kTick, [this] { return ending_; });
}

void LeaseKeeper::run() {
  while (wait_for_tick()) {
    if (BootClock::now() >= next_try_)
      extend(live());
    if (BootClock::now() >= next_give_back_)
      give_back_left();
  }
}

/// Until the next deadline of a call, for a tick at most: one that begins meanwhile has a deadline
/// as well. False: it ends.
bool LeaseKeeper::wait_for_deadline() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return ending_ || !held_.empty(); });
  std::chrono::nanoseconds wait = kTick;
  for (const auto& one : held_) {
    const auto held = one.lock();
    if (!held || held->stop_.stop_requested())
      continue;
    wait = std::min({wait, held->safe_until_ - BootClock::now(),
                     std::chrono::nanoseconds(held->deadline_ - std::chrono::steady_clock::now())});
  }
  return !changed_.wait_for(lock, wait, [this] { return ending_; });
}

void LeaseKeeper::watch() {
  while (wait_for_deadline())
    check_deadlines(live());
}

void LeaseKeeper::check_deadlines(const Held& held) {
  const auto boot = BootClock::now();
  const auto steady = std::chrono::steady_clock::now();
  Held over;
  Held stuck;
  {
    const std::scoped_lock lock(mutex_);
    for (const auto& one : held) {
      if (one->lost_ || boot >= one->safe_until_ || steady >= one->deadline_)
        over.push_back(one);
      if (steady - kGrace >= one->deadline_ && !std::exchange(one->told_, true))
        stuck.push_back(one);
    }
  }
  // What is registered with the token runs here, so not under the lock.
  for (const auto& one : over)
    one->stop_.request_stop();
  for (const auto& one : stuck) {
    auto event = warning_event(Warning::kWorkerStuck,
                               "a call continues although its timeout has passed and its stop "
                               "token is set. Its key and the "
                               "shutdown of the process wait for it");
    event.key = one->lease_.key;
    observers_.emit(event);
  }
}

void LeaseKeeper::extend(const Held& held) {
  const auto asked_at = BootClock::now();
  Held due;
  std::vector<ledger::KeyLease> leases;
  {
    const std::scoped_lock lock(mutex_);
    for (const auto& one : held) {
      if (asked_at >= one->extended_until_)
        continue;
      // After a third of its time.
      if (one->safe_until_ - asked_at > time() * 2 / 3 - margin(time()))
        continue;
      due.push_back(one);
      leases.push_back(one->lease_);
    }
  }
  if (due.empty())
    return;
  try {
    const auto extended = extender_->extend(leases);
    warned_of_.clear();
    const std::scoped_lock lock(mutex_);
    for (std::size_t i = 0; i < due.size(); ++i) {
      if (extended[i] == ledger::Extended::kExtended)
        due[i]->safe_until_ = asked_at + time() - margin(time());
      due[i]->lost_ = extended[i] == ledger::Extended::kLost;
    }
  } catch (...) {
    const auto failure = explain(std::current_exception(), false);
    next_try_ = BootClock::now() + std::min(kRetry, time() / 10);
    warn(fmt::format(
        "cannot extend the leases of {}: {}. Retrying. Calls whose lease expires are canceled",
        texts::counted(static_cast<std::int64_t>(due.size()), "call", "calls"), failure.text));
  }
}

/// A lease that is not there may still be given: the network, or a server that stood still, may
/// deliver the request later. It is looked for at intervals that double, so that one that is given
/// late is there for no longer than its request took.
void LeaseKeeper::give_back_left() {
  std::list<Left> left;
  {
    const std::scoped_lock lock(mutex_);
    left.swap(left_);
  }
  const auto now = BootClock::now();
  try {
    for (auto one = left.begin(); one != left.end();) {
      if (now >= one->until || (now >= one->due && extender_->give_back(one->lease))) {
        one = left.erase(one);
        continue;
      }
      if (now >= one->due) {
        one->due = now + one->wait;
        one->wait *= 2;
      }
      ++one;
    }
  } catch (const std::exception&) {
    // Their server cannot be used now.
    next_give_back_ = now + kRetry;
  }
  const std::scoped_lock lock(mutex_);
  left_.splice(left_.end(), left);
}

/// Once for as long as it lasts.
void LeaseKeeper::warn(std::string why) {
  if (!warned_of_.empty())
    return;
  warned_of_ = std::move(why);
  observers_.emit(warning_event(Warning::kLeasesNotExtended, warned_of_));
}

}  // namespace pawl::engine
