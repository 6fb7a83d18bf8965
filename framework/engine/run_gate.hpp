#pragma once

#include <atomic>
#include <chrono>
#include <mutex>
#include <utility>

namespace pawl::engine {

/// Decides who of this process may run a handler now: many at once, or one suspect alone, so that a
/// crash says which message caused it. Nobody blocks; who is turned away asks again. Any thread.
class RunGate {
 public:
  using Clock = std::chrono::steady_clock;

  /// Leave to run, until it is destroyed. False: not now.
  class Pass {
   public:
    Pass() = default;
    Pass(Pass&& other) noexcept
        : gate_(std::exchange(other.gate_, nullptr)), alone_(other.alone_) {}
    Pass& operator=(Pass&& other) noexcept;
    ~Pass() { give_back(); }
    Pass(const Pass&) = delete;
    Pass& operator=(const Pass&) = delete;
    explicit operator bool() const { return gate_ != nullptr; }

   private:
    friend class RunGate;
    Pass(RunGate& gate, bool alone) : gate_(&gate), alone_(alone) {}
    void give_back() noexcept;

    RunGate* gate_ = nullptr;
    bool alone_ = false;
  };

  Pass among_others();
  /// `who` names the suspect: while it asks again within kPatience the others are turned away, so
  /// that its turn comes.
  Pass alone(const void* who);

 private:
  static constexpr std::chrono::milliseconds kPatience{250};

  void leave(bool alone) noexcept;

  std::atomic<int> running_{0};      ///< those among others
  std::atomic<bool> closed_{false};  ///< a suspect runs or wants to
  std::mutex mutex_;
  const void* suspect_ = nullptr;  // guarded by mutex_
  bool suspect_runs_ = false;      // guarded by mutex_
  Clock::time_point asked_at_{};   // guarded by mutex_
};

}  // namespace pawl::engine
