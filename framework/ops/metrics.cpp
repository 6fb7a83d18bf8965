#include "ops/metrics.hpp"

#include <chrono>
#include <exception>
#include <memory>
#include <optional>
#include <string>

namespace pawl::ops {
namespace {

/// Nanoseconds: from half a millisecond to a minute.
constexpr auto kTimes = std::to_array<std::int64_t>(
    {500'000, 1'000'000, 2'500'000, 5'000'000, 10'000'000, 25'000'000, 50'000'000, 100'000'000,
     250'000'000, 500'000'000, 1'000'000'000, 2'500'000'000, 5'000'000'000, 10'000'000'000,
     30'000'000'000, 60'000'000'000});
constexpr auto kSizes =
    std::to_array<std::int64_t>({1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 4096});

/// Whoever looks at the outbox does so every 10 s at least; behind three looks another may do it.
constexpr std::chrono::seconds kOutboxSeenFor{30};

std::int64_t nanoseconds(Timing::Duration duration) {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(duration).count();
}

std::unique_ptr<Histogram> new_times() {
  return std::make_unique<Histogram>(kTimes);
}

std::unique_ptr<MetricsObserver::Counter> new_counter() {
  return std::make_unique<MetricsObserver::Counter>(0);
}

std::optional<Tally> tally_of(Step step) {
  switch (step) {
    case Step::kMessageCommitted:
      return Tally::kApplied;
    case Step::kMessageDeduplicated:
      return Tally::kDuplicates;
    case Step::kMessageSkipped:
      return Tally::kSkipped;
    case Step::kMessageDeadLettered:
      return Tally::kDead;
    case Step::kMessageParked:
      return Tally::kParked;
    case Step::kRetryScheduled:
      return Tally::kRetryScheduled;
    case Step::kRetrySucceeded:
      return Tally::kRetrySucceeded;
    case Step::kCommitOutcomeUnknown:
      return Tally::kCommitOutcomeUnknown;
    case Step::kPartitionFenced:
      return Tally::kFenced;
    default:
      return std::nullopt;
  }
}

}  // namespace

MetricsObserver::MetricsObserver(std::chrono::milliseconds outbox_alert_age)
    : outbox_alert_age_(outbox_alert_age), commits_(kTimes), pipelines_(kSizes), batches_(kSizes) {}

void MetricsObserver::on_event(const Event& event) noexcept {
  try {
    note(event);
  } catch (const std::exception&) {
    // Out of memory, for a new partition: it is not counted this time.
    return;
  }
}

MetricsObserver::Partition& MetricsObserver::partition_of(const Event& event) {
  return partitions_.at(event.topic, event.partition, [&] {
    return std::make_unique<Partition>(since_fetched_.at(event.topic, -1, new_times));
  });
}

void MetricsObserver::note(const Event& event) {
  switch (event.step) {
    case Step::kWarning:
      ++warnings_.at(to_string(*event.warning), -1, new_counter);
      leases_lost_ += event.warning == Warning::kLeaseLost ? 1 : 0;
      // Until it is back: nothing else is told of another one.
      if (event.warning == Warning::kWrongDatabase)
        wrong_database_ = true;
      return;
    case Step::kDatabaseDisconnected:
      ++connections_lost_;
      return;
    case Step::kDatabaseConnected: {
      // A server that takes connections may refuse all else.
      auto unknown = Reached::kUnknown;
      database_.compare_exchange_strong(unknown, Reached::kYes);
      return;
    }
    case Step::kDatabaseReachable:
      database_ = Reached::kYes;
      wrong_database_ = false;
      return;
    case Step::kDatabaseUnreachable:
      database_ = Reached::kNo;
      return;
    case Step::kLogEndChanged:
    case Step::kKafkaReachable:
      kafka_ = Reached::kYes;
      return;
    case Step::kKafkaUnreachable:
      kafka_ = Reached::kNo;
      return;
    case Step::kRedisReachable:
      redis_ = Reached::kYes;
      return;
    case Step::kRedisUnreachable:
      redis_ = Reached::kNo;
      return;
    case Step::kOutboxShardAcquired:
      // Both were asked for it.
      database_ = Reached::kYes;
      kafka_ = Reached::kYes;
      relays_ = true;
      return outbox_.count(event);
    case Step::kOutboxBatchFinished:
    case Step::kOutboxMessageRejected:
    case Step::kOutboxPartitionsUnwritable:
    case Step::kOutboxPartitionsWritable:
    case Step::kOutboxShardReleased:
      return outbox_.count(event);
    case Step::kOutboxSampled: {
      const std::scoped_lock lock(outbox_seen_mutex_);
      outbox_seen_ = Seen{event.waits, std::chrono::steady_clock::now()};
      return;
    }
    default:
      return note_partition(event);
  }
}

std::optional<std::chrono::milliseconds> MetricsObserver::outbox_waits(
    std::chrono::steady_clock::time_point now) const {
  const std::scoped_lock lock(outbox_seen_mutex_);
  if (!outbox_seen_ || now - outbox_seen_->at > kOutboxSeenFor)
    return std::nullopt;
  return outbox_seen_->waits;
}

std::optional<bool> MetricsObserver::outbox_late(std::chrono::steady_clock::time_point now) const {
  const auto waits = outbox_waits(now);
  return waits ? std::optional(*waits > outbox_alert_age_) : std::nullopt;
}

void MetricsObserver::note_partition(const Event& event) {
  if (event.topic.empty() || event.partition < 0)
    return;
  if (const auto tally = tally_of(event.step)) {
    auto& partition = partition_of(event);
    partition.count(*tally);
    if (event.unchecked)
      partition.count(Tally::kUnchecked);
    if (event.timing != nullptr)
      note_time(event, partition);
    return;
  }
  switch (event.step) {
    case Step::kAttemptFailed:
      ++failed_attempts_.at(std::string(event.topic).append(1, '\0').append(event.reason),
                            event.partition, new_counter);
      if (event.reason == "conflict")
        partition_of(event).count(Tally::kConflicts);
      return;
    case Step::kAssignmentReceived: {
      auto& partition = partition_of(event);
      partition.fresh = true;
      partition.standing = false;
      auto unknown = Reached::kUnknown;
      kafka_.compare_exchange_strong(unknown, Reached::kYes);
      return;
    }
    case Step::kPartitionAssigned:
    case Step::kHaltedPartitionRetried: {
      auto& partition = partition_of(event);
      const bool fresh = partition.fresh.exchange(false);
      const bool stood = partition.standing.exchange(false);
      if (!fresh && !stood)
        partition.count(Tally::kReacquired);
      return;
    }
    case Step::kPartitionHalted: {
      auto& partition = partition_of(event);
      partition.fresh = false;
      // It is found halted anew whenever the connection was lost.
      if (!partition.standing.exchange(true))
        partition.count(Tally::kHalts);
      return;
    }
    case Step::kPartitionResumed:
      partition_of(event).standing = false;
      return;
    case Step::kPartitionPaused: {
      auto& partition = partition_of(event);
      partition.fresh = false;
      partition.standing = true;
      return;
    }
    default:
      return;
  }
}

void MetricsObserver::note_time(const Event& event, Partition& partition) {
  const auto& timing = *event.timing;
  if (timing.since_fetched)
    partition.since_fetched.observe(nanoseconds(*timing.since_fetched));
  if (timing.handler)
    handlers_.at(event.handler, -1, new_times).observe(nanoseconds(*timing.handler));
  if (timing.commit)
    commits_.observe(nanoseconds(*timing.commit));
  if (timing.messages == 0)
    return;
  if (timing.grouping == Grouping::kPipeline)
    pipelines_.observe(static_cast<std::int64_t>(timing.messages));
  if (timing.grouping == Grouping::kBatch)
    batches_.observe(static_cast<std::int64_t>(timing.messages));
}

}  // namespace pawl::ops
