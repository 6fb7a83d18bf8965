#include "kafka/partition_stream.hpp"

#include <algorithm>
#include <utility>

#include "kafka/intake.hpp"

namespace pawl::kafka {

PartitionStream::PartitionStream(Intake& intake, TopicPartition partition,
                                 std::function<void()> on_readable)
    : intake_(intake),
      partition_(std::move(partition)),
      on_readable_(std::move(on_readable)),
      share_(intake.buffer()),
      window_(intake.buffer().plan()) {}

PartitionStream::~PartitionStream() = default;

std::vector<Record> PartitionStream::take(std::size_t most) {
  std::vector<Record> records;
  bool resume = false;
  {
    const std::scoped_lock lock(mutex_);
    const auto count = std::min(most, inbox_.size());
    records.reserve(count);
    for (std::size_t i = 0; i < count; ++i) {
      records.push_back(std::move(inbox_.front()));
      inbox_.pop_front();
    }
    if (count == 0)
      note_dry();
    resume = may_go_on();
  }
  if (resume)
    intake_.ask_resume(shared_from_this());
  return records;
}

/// Its worker wants more, and nothing is here. No fault of the window's unless it was throttled,
/// and nothing has come since.
void PartitionStream::note_dry() {
  const bool was_throttled = throttled_ || doubt_ != Doubt::kNone;
  if (open_ && was_throttled && !std::exchange(ran_dry_, true))
    window_.ran_dry();
}

/// True: it is throttled and is to go on now, which is said once. The caller holds the mutex.
bool PartitionStream::may_go_on() {
  if (!open_ || !throttled_ || resume_asked_)
    return false;
  const auto& buffer = intake_.buffer();
  const auto use = buffer.use();
  const auto part = share_.part();
  if (!may_resume(buffer.plan(), use, part, window_.bytes()) ||
      admit(buffer.plan(), use, part, refused_, window_.bytes()) == Admission::kThrottle)
    return false;
  window_.lasted(std::chrono::steady_clock::now() - throttled_at_);
  resume_asked_ = true;
  return true;
}

bool PartitionStream::waits_for_room() {
  const std::scoped_lock lock(mutex_);
  return throttled_ || intake_.buffer().waits_for_room();
}

void PartitionStream::throttle(std::size_t refused) {
  throttled_ = true;
  refused_ = refused;
  resume_asked_ = false;
  ran_dry_ = false;
  throttled_at_ = std::chrono::steady_clock::now();
}

void PartitionStream::open(std::int64_t offset) {
  const std::scoped_lock lock(mutex_);
  inbox_.clear();
  open_ = !closed_;
  throttled_ = false;
  resume_asked_ = false;
  next_ = {offset, std::nullopt};
  doubt_ = Doubt::kNone;
}

void PartitionStream::shut() {
  const std::scoped_lock lock(mutex_);
  inbox_.clear();
  open_ = false;
}

void PartitionStream::close() {
  const std::scoped_lock lock(mutex_);
  inbox_.clear();
  share_.cancel();
  open_ = false;
  closed_ = true;
}

PartitionStream::Push PartitionStream::push(Record& record) {
  bool was_empty = false;
  {
    const std::scoped_lock lock(mutex_);
    if (!open_ || throttled_)
      return Push::kTaken;
    was_empty = inbox_.empty();
    switch (record.kind()) {
      case Record::Kind::kMessage:
        if (const auto result = push_message(record); result != Push::kTaken)
          return result;
        break;
      case Record::Kind::kEndOfLog:
        if (is_unexpected(record.offset() == next_.offset))
          return Push::kUnsure;
        doubt_ = Doubt::kNone;
        next_.offset = std::max(next_.offset, record.offset());
        inbox_.push_back(std::move(record));
        break;
      case Record::Kind::kError:
        inbox_.push_back(std::move(record));
        break;
    }
  }
  if (was_empty)
    on_readable_();
  return Push::kTaken;
}

PartitionStream::Push PartitionStream::push_message(Record& record) {
  if (is_unexpected(is_next(record)))
    return Push::kUnsure;
  const auto& buffer = intake_.buffer();
  const auto bytes = record.memory();
  switch (admit(buffer.plan(), buffer.use(), share_.part(), bytes, window_.bytes())) {
    case Admission::kAccept:
      break;
    case Admission::kWait:
      return Push::kWait;
    case Admission::kThrottle:
      throttle(bytes);
      return Push::kStop;
  }
  doubt_ = Doubt::kNone;
  next_ = {record.offset() + 1, record.leader_epoch()};
  record.hold(BufferHold(share_, bytes));
  inbox_.push_back(std::move(record));
  return Push::kTaken;
}

/// What comes first after a resume is not what was awaited: Kafka is asked once more, then
/// believed.
bool PartitionStream::is_unexpected(bool is_what_was_awaited) {
  if (doubt_ != Doubt::kFirst || is_what_was_awaited)
    return false;
  doubt_ = Doubt::kAskedAgain;
  throttle(0);
  resume_asked_ = true;
  return true;
}

/// A record of the same leader epoch as the one before it is of the same log, and what stands
/// between their offsets was removed from it.
bool PartitionStream::is_next(const Record& record) const {
  return record.offset() == next_.offset && record.leader_epoch() == next_.leader_epoch;
}

std::optional<LogPosition> PartitionStream::continuation() {
  const std::scoped_lock lock(mutex_);
  if (!open_ || !throttled_)
    return std::nullopt;
  auto from = next_;
  // librdkafka asks the leader about the epoch, which takes as long as the fetch under way; so only
  // where something has changed.
  if (doubt_ != Doubt::kAskedAgain)
    from.leader_epoch.reset();
  return from;
}

void PartitionStream::resumed() {
  const std::scoped_lock lock(mutex_);
  throttled_ = false;
  resume_asked_ = false;
  if (doubt_ != Doubt::kAskedAgain)
    doubt_ = Doubt::kFirst;
}

}  // namespace pawl::kafka
