#include "outbox/unwritable.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "message/partition_name.hpp"

namespace pawl::engine {
namespace {

using std::chrono::seconds;

/// Longer than Kafka takes to notice that a broker is dead (broker.session.timeout.ms), so that the
/// leader that it names then is alive. Each try that fails costs the lane some seconds, so the next
/// one comes later and later.
constexpr seconds kFirstPause{10};
constexpr seconds kLongestPause{300};
/// To look whether there is a leader costs nothing.
constexpr seconds kLook{5};

seconds pause_after(int failures) {
  return std::min(kFirstPause * (1 << std::min(failures - 1, 8)), kLongestPause);
}

}  // namespace

bool UnwritablePartitions::note(const Failure& failure, const Sizes& sizes, Clock::time_point now) {
  if (failure.undelivered.empty())
    return false;
  // One that was tried alone.
  const bool alone =
      failure.undelivered.size() == 1 && entries_.contains(*failure.undelivered.begin());
  bool certain = failure.others_delivered || alone;
  if (!certain && !failed_whole_) {
    failed_whole_ = true;
    return false;
  }
  failed_whole_ = false;
  certain = certain || failure.undelivered.size() == 1;
  for (const auto& partition : failure.undelivered) {
    const auto size = sizes.find(partition.topic);
    auto& entry = entries_[partition];
    entry.partitions = size != sizes.end() ? size->second : partition.partition + 1;
    entry.why = failure.why;
    // Of several one may be at fault for all: each is tried alone, at once.
    entry.failures += certain ? 1 : 0;
    entry.next = certain ? now + pause_after(entry.failures) : now;
  }
  return true;
}

std::int32_t UnwritablePartitions::partitions_of(const std::string& topic) const {
  std::int32_t partitions = 0;
  for (auto entry = entries_.lower_bound({topic, 0});
       entry != entries_.end() && entry->first.topic == topic; ++entry)
    partitions = std::max(partitions, entry->second.partitions);
  return partitions;
}

UnwritablePartitions::Place UnwritablePartitions::place(const std::string& topic,
                                                        const std::optional<std::string>& key,
                                                        std::int64_t id) const {
  const auto partitions = partitions_of(topic);
  if (partitions == 0)
    return {};
  if (const auto chosen = chooser_(key, partitions))
    return {entries_.contains({topic, *chosen}), std::nullopt};
  for (std::int32_t step = 0; step < partitions; ++step) {
    const auto any = static_cast<std::int32_t>((id + step) % partitions);
    if (!entries_.contains({topic, any}))
      return {false, any};
  }
  return {true, std::nullopt};
}

bool UnwritablePartitions::leads_to(const TopicPartition& partition, const std::string& topic,
                                    const std::optional<std::string>& key) const {
  if (topic != partition.topic)
    return false;
  const auto chosen = chooser_(key, partitions_of(topic));
  // One that may go anywhere waits only where nothing is left.
  return chosen ? *chosen == partition.partition : place(topic, key, 0).left_out;
}

std::optional<TopicPartition> UnwritablePartitions::due(Clock::time_point now) const {
  const auto next =
      std::ranges::min_element(entries_, {}, [](const auto& entry) { return entry.second.next; });
  if (next == entries_.end() || next->second.next > now)
    return std::nullopt;
  return next->first;
}

void UnwritablePartitions::tried(const TopicPartition& partition, Clock::time_point now) {
  auto& entry = entries_[partition];
  entry.next = now + pause_after(entry.failures + 1);
}

void UnwritablePartitions::has_no_leader(const TopicPartition& partition, Clock::time_point now) {
  auto& entry = entries_[partition];
  entry.next = now + kLook;
  entry.why = "the partition has no leader";
}

std::string UnwritablePartitions::text() const {
  std::string text;
  for (const auto& [partition, entry] : entries_) {
    text +=
        fmt::format("{}{} ({})", text.empty() ? "" : ", ", message::name_of(partition), entry.why);
  }
  return text;
}

}  // namespace pawl::engine
