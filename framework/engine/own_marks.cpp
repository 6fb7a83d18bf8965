#include "engine/own_marks.hpp"

#include <fmt/format.h>

namespace pawl::engine {

void OwnMarks::remove(const Partition& partition, bool passed) {
  if (!session_.alive())
    return remember(partition);
  try {
    if (passed)
      context_.suspects.clear(*session_, partition.name(), context_.owner);
    // What was left may be the mark of a fetch. Later it could not be told from a new one.
    if (!passed || left_.contains(partition.name()))
      context_.offsets.marks().remove(*session_, partition.name(), context_.owner);
    left_.erase(partition.name());
  } catch (const std::exception&) {
    remember(partition);
    // A lost session is noticed at its next use.
    const auto failure = session_.why_failed();
    if (failure.kind != postgres::FailureClass::kConnection) {
      partition.warn(
          Warning::kFailureNotStored,
          fmt::format("cannot remove the mark of a message on probation: {}. It counts as "
                      "a crash if this process stops before it can be removed",
                      failure.text));
    }
  }
}

void OwnMarks::remove_after_leaving(const TopicPartition& partition) {
  left_.insert(partition);
  if (session_.alive())
    remove_left();
}

void OwnMarks::remove_left() {
  try {
    remove_left(*session_);
  } catch (const std::exception&) {
    session_.notice_failure(Warning::kFailureNotStored,
                            "cannot remove the mark of a message on probation");
  }
}

bool OwnMarks::remove_left_at_end() {
  try {
    if (session_.alive()) {
      remove_left(*session_);
    } else if (const auto fresh = session_.open_to_end()) {
      remove_left(*fresh);
    }
  } catch (const std::exception&) {
    // Whoever asks tries again, or says that it cannot be done.
    return false;
  }
  return left_.empty();
}

void OwnMarks::remove_left(postgres::Session& session) {
  while (!left_.empty()) {
    context_.offsets.marks().remove(session, *left_.begin(), context_.owner);
    left_.erase(left_.begin());
  }
}

}  // namespace pawl::engine
