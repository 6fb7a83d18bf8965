#include "engine/suspect_choice.hpp"

namespace pawl::engine {

using handlers::Liability;

SuspectChoice::Answer SuspectChoice::ask(const Candidate& candidate) {
  asked_to_ = candidate.offset;
  if (candidate.offset >= limits_.end) {
    open_ = false;
    return Answer::kNo;
  }
  ++asked_;
  return limits_.side_by_side ? ask_side_by_side(candidate) : ask_in_log_order(candidate);
}

SuspectChoice::Answer SuspectChoice::ask_in_log_order(const Candidate& candidate) {
  if (candidate.calls) {
    // It begins when all before it are finished, and nothing behind it begins before it is.
    open_ = false;
    if (asked_ > 1)
      return Answer::kNo;
  } else if (asked_ >= limits_.at_once) {
    open_ = false;
  }
  switch (candidate.liability) {
    case Liability::kAny:
      return Answer::kYes;
    case Liability::kCall:
      return Answer::kIfCalled;
    case Liability::kNone:
      break;
  }
  return Answer::kNo;
}

SuspectChoice::Answer SuspectChoice::ask_side_by_side(const Candidate& candidate) {
  if (asked_ >= limits_.ahead)
    open_ = false;
  if (candidate.order_key && !order_keys_.insert(*candidate.order_key).second)
    return Answer::kNo;
  if (candidate.liability == Liability::kCall)
    return Answer::kIfCalled;
  auto& of_handler = of_handler_[candidate.handler];
  if (candidate.liability == Liability::kNone || of_handler >= candidate.concurrency ||
      running_ >= limits_.at_once)
    return candidate.lease_tells ? Answer::kIfCalled : Answer::kNo;
  ++of_handler;
  if (++running_ >= limits_.at_once && !limits_.calls_with_code)
    open_ = false;
  return Answer::kYes;
}

void SuspectChoice::add(std::int64_t offset) {
  suspects_.insert(offset);
  ++added_;
}

std::optional<std::size_t> SuspectChoice::take_end() {
  if (told_ || is_going_on())
    return std::nullopt;
  told_ = true;
  return added_;
}

}  // namespace pawl::engine
