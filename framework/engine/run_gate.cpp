#include "engine/run_gate.hpp"

namespace pawl::engine {

RunGate::Pass& RunGate::Pass::operator=(Pass&& other) noexcept {
  if (this != &other) {
    give_back();
    gate_ = std::exchange(other.gate_, nullptr);
    alone_ = other.alone_;
  }
  return *this;
}

void RunGate::Pass::give_back() noexcept {
  if (gate_ != nullptr)
    std::exchange(gate_, nullptr)->leave(alone_);
}

RunGate::Pass RunGate::among_others() {
  // Counted before looking, while a suspect closes before counting: one of the two sees the other.
  ++running_;
  if (!closed_)
    return {*this, false};
  --running_;
  const std::scoped_lock lock(mutex_);
  if (!suspect_runs_ && Clock::now() - asked_at_ > kPatience) {
    // Its partition was taken from us before its turn came.
    suspect_ = nullptr;
    closed_ = false;
  }
  return {};
}

RunGate::Pass RunGate::alone(const void* who) {
  const std::scoped_lock lock(mutex_);
  const auto now = Clock::now();
  const bool anothers_turn = suspect_ != nullptr && suspect_ != who && now - asked_at_ <= kPatience;
  if (suspect_runs_ || anothers_turn)
    return {};
  suspect_ = who;
  asked_at_ = now;
  closed_ = true;
  if (running_ > 0)
    return {};
  suspect_runs_ = true;
  return {*this, true};
}

void RunGate::leave(bool alone) noexcept {
  if (!alone) {
    --running_;
    return;
  }
  const std::scoped_lock lock(mutex_);
  suspect_runs_ = false;
  suspect_ = nullptr;
  closed_ = false;
}

}  // namespace pawl::engine
