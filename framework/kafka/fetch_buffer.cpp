#include "kafka/fetch_buffer.hpp"

#include <algorithm>

namespace pawl::kafka {
namespace {

constexpr std::size_t kMiB = std::size_t{1} << 20U;
/// Large enough that a single busy partition comes at the network's pace.
constexpr std::size_t kLargestQuantum = kMiB;
constexpr std::size_t kSmallestQuantum = kMiB / 16;
/// Beyond its reserved share a partition may hold so many times what is left for all others. So
/// what is left is never all gone, however many partitions are quick: a quarter after the first, a
/// seventh after two.
constexpr std::size_t kTimesFree = 3;
/// Partitions whose messages run ahead may hold this part of what is not reserved, all together.
constexpr std::size_t kAheadPart = 2;
/// A window that was too small becomes so many times as large.
constexpr std::size_t kGrowth = 4;
/// What lasts for longer is more than is needed: Kafka brings more within a tenth of it.
constexpr std::chrono::seconds kLongEnough{2};

std::size_t left_of(std::size_t whole, std::size_t used) {
  return whole - std::min(whole, used);
}

/// What all partitions share by need.
std::size_t common(const BufferPlan& plan, const BufferUse& use) {
  return left_of(plan.pool, use.reserved);
}

std::size_t free_of(const BufferPlan& plan, const BufferUse& use) {
  return left_of(common(plan, use), use.in_turn + use.ahead);
}

/// What is left for a partition that holds something.
std::size_t room_for(const BufferPlan& plan, const BufferUse& use, bool ahead) {
  const auto free = free_of(plan, use);
  return ahead ? std::min(free, left_of(common(plan, use) / kAheadPart, use.ahead)) : free;
}

}  // namespace

BufferPlan BufferPlan::of(std::size_t buffer, std::size_t partitions) {
  BufferPlan plan{};
  plan.queue = buffer / 8;
  plan.response = buffer / 16;
  plan.pool = buffer - plan.queue - plan.response;
  plan.quantum =
      std::clamp(buffer / std::max<std::size_t>(partitions, 1), kSmallestQuantum, kLargestQuantum);
  plan.quantum = std::min(plan.quantum, plan.response);
  plan.least = std::min(plan.quantum, plan.pool / 2 / std::max<std::size_t>(partitions, 1));
  return plan;
}

std::size_t BufferPlan::queue_records() const {
  return std::max<std::size_t>(queue / kRecordOverhead, 1);
}

Admission admit(const BufferPlan& plan, const BufferUse& use, const BufferPart& part,
                std::size_t bytes, std::size_t window) {
  const auto held = part.held + bytes;
  if (held <= part.reserved)
    return Admission::kAccept;
  auto after = use;
  (part.ahead ? after.ahead : after.in_turn) += held - std::max(part.held, part.reserved);
  if (part.held > 0) {
    const auto most = std::min(window, kTimesFree * room_for(plan, after, part.ahead));
    return held > most ? Admission::kThrottle : Admission::kAccept;
  }
  // One record, larger than its partition's reserved share.
  if (after.in_turn + after.ahead <= common(plan, use))
    return Admission::kAccept;
  if (use.in_turn > 0)
    return Admission::kWait;
  // Messages that run ahead may be retried for long, and no other partition waits for them. One
  // such record passes when it is alone.
  return part.ahead && use.ahead > 0 ? Admission::kThrottle : Admission::kAccept;
}

bool may_resume(const BufferPlan& plan, const BufferUse& use, const BufferPart& part,
                std::size_t window) {
  const auto room = room_for(plan, use, part.ahead);
  return part.held <= std::max(std::min(window / 2, room), part.reserved / 2);
}

void FetchWindow::ran_dry() {
  bytes_ = std::min(kGrowth * bytes_, plan_->pool);
}

void FetchWindow::lasted(std::chrono::steady_clock::duration time) {
  if (time > kLongEnough)
    bytes_ = std::max(bytes_ / 2, plan_->least);
}

FetchBuffer::FetchBuffer(const BufferPlan& plan, std::function<void()> on_room)
    : plan_(plan), on_room_(std::move(on_room)) {}

BufferUse FetchBuffer::use() const {
  const auto held = [](std::ptrdiff_t bytes) {
    return static_cast<std::size_t>(std::max<std::ptrdiff_t>(bytes, 0));
  };
  return {reserved_, held(in_turn_), held(ahead_)};
}

std::size_t FetchBuffer::reserve() {
  const auto reserved = reserved_ += plan_.least;
  if (reserved <= plan_.pool / 2)
    return plan_.least;
  reserved_ -= plan_.least;
  return 0;
}

void FetchBuffer::cancel(std::size_t reserved) {
  reserved_ -= reserved;
  tell_of_room();
}

void FetchBuffer::give_back(std::size_t bytes, bool ahead) {
  (ahead ? ahead_ : in_turn_) -= static_cast<std::ptrdiff_t>(bytes);
  tell_of_room();
}

void FetchBuffer::tell_of_room() {
  auto wanted = wanted_.load();
  // Only one of those who see it says it.
  if (wanted != 0 && has_room(wanted) && wanted_.compare_exchange_strong(wanted, 0))
    on_room_();
}

/// As admit() decides it of a record that waits.
bool FetchBuffer::has_room(std::size_t bytes) const {
  const auto now = use();
  return now.in_turn == 0 || free_of(plan_, now) >= bytes;
}

bool FetchBuffer::wait_for_room(std::size_t bytes) {
  // Not for each record that goes, but before anybody runs out.
  const auto wanted = std::max(bytes, plan_.pool / 64);
  wanted_ = wanted;
  if (!has_room(wanted))
    return true;
  wanted_ = 0;
  return false;
}

}  // namespace pawl::kafka
