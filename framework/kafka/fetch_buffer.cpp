#include "kafka/fetch_buffer.hpp"

#include <algorithm>

namespace pawl::kafka {
namespace {

constexpr std::size_t kMiB = std::size_t{1} << 20U;
/// Large enough that a single busy partition comes at the network's pace.
constexpr std::size_t kLargestQuantum = kMiB;
constexpr std::size_t kSmallestQuantum = kMiB / 16;
/// A partition may hold so many times what is left for all others. So what is left is never all
/// gone, however many partitions are quick: a quarter behind the first, a seventh behind two.
constexpr std::size_t kTimesFree = 3;
/// A window that was too small becomes so many times as large.
constexpr std::size_t kGrowth = 4;
/// What lasts for longer is more than is needed: Kafka brings more within a tenth of it.
constexpr std::chrono::seconds kLongEnough{2};

std::size_t free_of(const BufferPlan& plan, std::size_t total) {
  return plan.pool - std::min(plan.pool, total);
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

Admission admit(const BufferPlan& plan, std::size_t total, std::size_t held, std::size_t bytes,
                std::size_t window) {
  const auto after = total + bytes;
  const auto most = std::max(std::min(window, kTimesFree * free_of(plan, after)), plan.least);
  if (held > 0 && held + bytes > most)
    return Admission::kThrottle;
  // One that is larger than all of the pool passes when it is alone.
  if (after > plan.pool && total > 0)
    return Admission::kWait;
  return Admission::kAccept;
}

bool may_resume(const BufferPlan& plan, std::size_t total, std::size_t held, std::size_t window) {
  return held <= std::max(std::min(window / 2, free_of(plan, total)), plan.least / 2);
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

void FetchBuffer::give_back(std::size_t bytes) {
  const auto left = total_ -= bytes;
  auto wanted = wanted_.load();
  if (wanted == 0 || (free_of(plan_, left) < wanted && left > 0))
    return;
  // Only one of those who see it says it.
  if (wanted_.compare_exchange_strong(wanted, 0))
    on_room_();
}

bool FetchBuffer::wait_for_room(std::size_t bytes) {
  // Not for each record that goes, but before anybody runs out.
  wanted_ = std::max(bytes, plan_.pool / 64);
  const auto total = total_.load();
  if (free_of(plan_, total) < wanted_.load() && total > 0)
    return true;
  wanted_ = 0;
  return false;
}

}  // namespace pawl::kafka
