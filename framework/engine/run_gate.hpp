#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <utility>

#include "engine/suspect_turns.hpp"

namespace pawl::engine {

/// Decides which messages of this process may run now: many at once, or one suspect alone, so that
/// a crash says which message caused it. Who is turned away asks again. Any thread.
class RunGate {
 public:
  using Clock = SuspectTurns::Clock;

  /// Beside which messages one runs.
  enum class Company { kAll, kOthers, kNone };

  /// Leave to run, until it is destroyed. False: not now.
  class Pass {
   public:
    Pass() = default;
    Pass(Pass&& other) noexcept
        : gate_(std::exchange(other.gate_, nullptr)), company_(other.company_), run_(other.run_) {}
    Pass& operator=(Pass&& other) noexcept;
    ~Pass() { give_back(); }
    Pass(const Pass&) = delete;
    Pass& operator=(const Pass&) = delete;
    explicit operator bool() const { return gate_ != nullptr; }

   private:
    friend class RunGate;
    Pass(RunGate& gate, Company company, std::uint64_t run = 0)
        : gate_(&gate), company_(company), run_(run) {}
    void give_back() noexcept;

    RunGate* gate_ = nullptr;
    Company company_ = Company::kAll;
    std::uint64_t run_ = 0;  ///< Company::kNone: as SuspectTurns counts
  };

  /// For a message that runs none of the application's code: no other one waits for it.
  Pass beside_all() { return {*this, Company::kAll}; }
  Pass among_others();
  /// The same, and waits for it up to so long.
  Pass among_others(Clock::duration longest);
  /// For a suspect of this partition. `until`: then others may begin, although it is not given
  /// back.
  Pass alone(const TopicPartition& partition, Clock::time_point until = Clock::time_point::max());

 private:
  void leave(Company company, std::uint64_t run) noexcept;
  void follow_turns();

  std::atomic<int> running_{0};      ///< those among others
  std::atomic<bool> closed_{false};  ///< as turns_ says
  std::mutex mutex_;
  std::condition_variable opened_;
  SuspectTurns turns_;  // guarded by mutex_
};

}  // namespace pawl::engine
