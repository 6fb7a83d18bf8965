#include "engine/run_gate.hpp"

namespace pawl::engine {

RunGate::Pass& RunGate::Pass::operator=(Pass&& other) noexcept {
  if (this != &other) {
    give_back();
    gate_ = std::exchange(other.gate_, nullptr);
    company_ = other.company_;
    run_ = other.run_;
  }
  return *this;
}

void RunGate::Pass::give_back() noexcept {
  if (gate_ != nullptr)
    std::exchange(gate_, nullptr)->leave(company_, run_);
}

RunGate::Pass RunGate::among_others() {
  // Counted before looking, while a suspect closes before counting: one of the two sees the other.
  ++running_;
  if (!closed_)
    return {*this, Company::kOthers};
  --running_;
  const std::scoped_lock lock(mutex_);
  const bool open = turns_.ask_among_others(Clock::now());
  follow_turns();
  if (!open)
    return {};
  // Under the lock nobody closes.
  ++running_;
  return {*this, Company::kOthers};
}

RunGate::Pass RunGate::among_others(Clock::duration longest) {
  if (auto pass = among_others())
    return pass;
  {
    std::unique_lock lock(mutex_);
    opened_.wait_for(lock, longest, [this] { return !turns_.closed(); });
  }
  return among_others();
}

RunGate::Pass RunGate::alone(const TopicPartition& partition, Clock::time_point until) {
  const std::scoped_lock lock(mutex_);
  const auto now = Clock::now();
  const bool its_turn = turns_.ask(now, partition);
  follow_turns();
  if (!its_turn || turns_.running() || running_ > 0)
    return {};
  return {*this, Company::kNone, turns_.began(now, until)};
}

void RunGate::leave(Company company, std::uint64_t run) noexcept {
  switch (company) {
    case Company::kAll:
      return;
    case Company::kOthers:
      --running_;
      return;
    case Company::kNone:
      break;
  }
  const std::scoped_lock lock(mutex_);
  turns_.ended(Clock::now(), run);
  follow_turns();
}

/// Under mutex_.
void RunGate::follow_turns() {
  const bool closed = turns_.closed();
  if (closed_.exchange(closed) && !closed)
    opened_.notify_all();
}

}  // namespace pawl::engine
