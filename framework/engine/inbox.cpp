#include "engine/inbox.hpp"

#include <algorithm>
#include <utility>

namespace pawl::engine {
namespace {

constexpr std::chrono::milliseconds kStuckAfter{15000};
constexpr std::uint64_t kStuckAnswers = 3;

}  // namespace

void Inbox::open(ledger::Position stored) {
  clear();
  taken_ = stored;
  first_pending_ = true;
}

void Inbox::clear() {
  items_.clear();
  unreadable_ = false;
}

Inbox::Taken Inbox::take(kafka::Record& record, Clock::time_point now) {
  switch (record.kind()) {
    case kafka::Record::Kind::kMessage: {
      if (!is_next(record))
        return Taken::kNotNext;
      found_its_place();
      const auto offset = record.offset();
      push(record, now);
      taken_ = ledger::Position::behind(offset);
      return Taken::kYes;
    }
    case kafka::Record::Kind::kEndOfLog: {
      found_its_place();
      const auto end = record.offset();
      push(record, now);
      taken_ = std::max(taken_, ledger::Position::before(end));
      return Taken::kYes;
    }
    case kafka::Record::Kind::kError:
      break;
  }
  if (record.error_kind() != kafka::ErrorKind::kUnreadable)
    return Taken::kError;
  unreadable_ = true;
  push(record, now);
  return Taken::kYes;
}

bool Inbox::is_next(const kafka::Record& record) {
  const auto expected = taken_.next();
  // Left over from an older position, or delivered twice: never ours to process.
  if (record.offset() < expected)
    return false;
  if (first_pending_ && record.offset() != expected && !sought_twice_) {
    // A hole (compaction, aborted transaction), or a stale fetch: ask once more, then believe it.
    sought_twice_ = true;
    return false;
  }
  return true;
}

void Inbox::found_its_place() {
  first_pending_ = false;
  sought_twice_ = false;
  refusal_.reset();
}

void Inbox::push(kafka::Record& record, Clock::time_point now) {
  const auto epoch = record.kind() == kafka::Record::Kind::kError ? std::optional<std::int32_t>()
                                                                  : record.leader_epoch();
  items_.push_back({std::move(record), taken_, epoch, now});
}

void Inbox::saw_life(Clock::time_point now, std::uint64_t answers) {
  last_life_ = now;
  answers_then_ = answers;
}

bool Inbox::is_stuck(Clock::time_point now, const LogLook& log) const {
  const bool behind = log.end > log.end_seen && log.end > taken_.next();
  return behind && log.answers - answers_then_ >= kStuckAnswers && now - last_life_ > kStuckAfter;
}

void Inbox::note_refusal(std::int64_t next, const std::string& text) {
  if (!refusal_ || refusal_->next != next)
    refusal_ = {next, 0, {}};
  ++refusal_->times;
  refusal_->text = text;
}

std::size_t Inbox::up_to_last_message() const {
  auto items = items_.size();
  while (items > 0 && !items_[items - 1].is_message())
    --items;
  return items;
}

}  // namespace pawl::engine
