#include "ops/metrics.hpp"

#include <thread>

#include "ops/histogram.hpp"
#include "prelude.hpp"

using namespace pawl::ops;
using pawl::Event;
using pawl::Grouping;
using pawl::Step;
using pawl::Timing;

namespace {

Event event(Step step, std::int32_t partition = 0, std::string_view topic = "payments") {
  Event event{step};
  event.topic = topic;
  event.partition = partition;
  return event;
}

std::uint64_t read(const MetricsObserver& metrics, Tally tally, std::int32_t wanted = 0) {
  std::uint64_t found = 0;
  metrics.partitions().each(
      [&](const std::string&, std::int32_t partition, const MetricsObserver::Partition& of) {
        if (partition == wanted)
          found += of.read(tally);
      });
  return found;
}

}  // namespace

TEST_CASE("a histogram counts each value in the first bucket that it does not exceed") {
  static constexpr auto kBounds = std::to_array<std::int64_t>({1, 10, 100});
  Histogram histogram(kBounds);
  for (const std::int64_t value : {0, 1, 2, 10, 11, 100, 101, 5000})
    histogram.observe(value);
  const auto counts = histogram.read();
  CHECK(counts.by_bucket == std::vector<std::uint64_t>{2, 2, 2, 2});
  CHECK(counts.all == 8);
  CHECK(counts.sum == 5225);
}

TEST_CASE("each end of a message is counted once, of its topic and partition") {
  MetricsObserver metrics;
  const std::vector<std::pair<Step, Tally>> ends{
      {Step::kMessageCommitted, Tally::kApplied},
      {Step::kMessageDeduplicated, Tally::kDuplicates},
      {Step::kMessageSkipped, Tally::kSkipped},
      {Step::kMessageDeadLettered, Tally::kDead},
      {Step::kMessageParked, Tally::kParked},
      {Step::kRetryScheduled, Tally::kRetryScheduled},
      {Step::kRetrySucceeded, Tally::kRetrySucceeded},
      {Step::kCommitOutcomeUnknown, Tally::kCommitOutcomeUnknown},
      {Step::kPartitionFenced, Tally::kFenced},
  };
  for (const auto& [step, tally] : ends) {
    metrics.on_event(event(step, 0));
    metrics.on_event(event(step, 1));
    metrics.on_event(event(step, 1));
    INFO(to_string(step));
    CHECK(read(metrics, tally, 0) == 1);
    CHECK(read(metrics, tally, 1) == 2);
  }
  for (const auto step :
       {Step::kMessageFetched, Step::kKeyClaimed, Step::kOffsetAdvancing, Step::kPartitionCaughtUp})
    metrics.on_event(event(step));
  CHECK(read(metrics, Tally::kApplied) == 1);
  CHECK(read(metrics, Tally::kUnchecked) == 0);
  auto unchecked = event(Step::kMessageCommitted);
  unchecked.unchecked = true;
  metrics.on_event(unchecked);
  CHECK(read(metrics, Tally::kApplied) == 2);
  CHECK(read(metrics, Tally::kUnchecked) == 1);
}

TEST_CASE("a partition is reacquired if it was neither assigned just now nor halted or paused") {
  MetricsObserver metrics;
  const auto tell = [&](Step step) { metrics.on_event(event(step)); };
  tell(Step::kAssignmentReceived);
  tell(Step::kPartitionAssigned);
  CHECK(read(metrics, Tally::kReacquired) == 0);
  tell(Step::kPartitionAssigned);
  CHECK(read(metrics, Tally::kReacquired) == 1);
  tell(Step::kPartitionHalted);
  tell(Step::kPartitionHalted);  // found so again, by another connection
  CHECK(read(metrics, Tally::kHalts) == 1);
  tell(Step::kPartitionAssigned);  // resumed
  CHECK(read(metrics, Tally::kReacquired) == 1);
  tell(Step::kPartitionHalted);
  CHECK(read(metrics, Tally::kHalts) == 2);
  tell(Step::kPartitionRevoked);
  tell(Step::kAssignmentReceived);
  tell(Step::kPartitionHalted);
  CHECK(read(metrics, Tally::kHalts) == 3);
  tell(Step::kPartitionAssigned);
  tell(Step::kPartitionPaused);
  tell(Step::kPartitionAssigned);
  CHECK(read(metrics, Tally::kReacquired) == 1);
  tell(Step::kPartitionHalted);
  tell(Step::kHaltedPartitionRetried);
  tell(Step::kPartitionHalted);
  CHECK(read(metrics, Tally::kHalts) == 5);
  tell(Step::kPartitionResumed);
  tell(Step::kPartitionHalted);
  CHECK(read(metrics, Tally::kHalts) == 6);
  CHECK(read(metrics, Tally::kReacquired) == 1);
}

TEST_CASE("failed attempts are counted by their reason") {
  MetricsObserver metrics;
  auto failed = event(Step::kAttemptFailed, 2);
  for (const auto* of : {"contention", "conflict", "contention"}) {
    failed.reason = of;
    metrics.on_event(failed);
  }
  std::map<std::string, std::uint64_t> counts;
  metrics.failed_attempts().each(
      [&](const std::string& name, std::int32_t partition, const MetricsObserver::Counter& count) {
        CHECK(partition == 2);
        counts[name] = count;
      });
  using namespace std::string_literals;
  CHECK(counts == std::map<std::string, std::uint64_t>{{"payments\0conflict"s, 1},
                                                       {"payments\0contention"s, 2}});
  CHECK(read(metrics, Tally::kConflicts, 2) == 1);
}

TEST_CASE("whether a server answers is known once somebody has asked it") {
  using Reached = MetricsObserver::Reached;
  MetricsObserver metrics;
  CHECK(metrics.database() == Reached::kUnknown);
  CHECK(metrics.kafka() == Reached::kUnknown);
  metrics.on_event(Event{Step::kDatabaseUnreachable});
  CHECK(metrics.database() == Reached::kNo);
  // One that takes connections may refuse all else.
  metrics.on_event(Event{Step::kDatabaseConnected});
  CHECK(metrics.database() == Reached::kNo);
  metrics.on_event(Event{Step::kDatabaseReachable});
  CHECK(metrics.database() == Reached::kYes);
  MetricsObserver begins;
  begins.on_event(Event{Step::kDatabaseConnected});
  CHECK(begins.database() == Reached::kYes);
  metrics.on_event(event(Step::kAssignmentReceived));
  CHECK(metrics.kafka() == Reached::kYes);
  metrics.on_event(Event{Step::kKafkaUnreachable});
  CHECK(metrics.kafka() == Reached::kNo);
  // What was fetched before may still be told.
  metrics.on_event(event(Step::kAssignmentReceived));
  CHECK(metrics.kafka() == Reached::kNo);
  metrics.on_event(event(Step::kLogEndChanged));
  CHECK(metrics.kafka() == Reached::kYes);
  metrics.on_event(Event{Step::kRedisUnreachable});
  CHECK(metrics.redis() == Reached::kNo);
  metrics.on_event(Event{Step::kRedisReachable});
  CHECK(metrics.redis() == Reached::kYes);
}

TEST_CASE("another database in the place of the right one is a state, which ends with its return") {
  MetricsObserver metrics;
  CHECK_FALSE(metrics.wrong_database());
  metrics.on_event(Event{Step::kDatabaseUnreachable});
  CHECK_FALSE(metrics.wrong_database());
  Event warning{Step::kWarning};
  warning.warning = pawl::Warning::kWrongDatabase;
  metrics.on_event(warning);
  CHECK(metrics.wrong_database());
  metrics.on_event(Event{Step::kDatabaseReachable});
  CHECK_FALSE(metrics.wrong_database());
}

TEST_CASE("how long the outbox waits is known while this process looks") {
  MetricsObserver metrics;
  const auto now = std::chrono::steady_clock::now();
  CHECK_FALSE(metrics.outbox_waits(now));
  Event seen{Step::kOutboxSampled};
  seen.waits = 90s;
  metrics.on_event(seen);
  CHECK(metrics.outbox_waits(now) == 90s);
  seen.waits = 0s;
  metrics.on_event(seen);
  CHECK(metrics.outbox_waits(now + 20s) == 0s);
  // Another one looks by then.
  CHECK_FALSE(metrics.outbox_waits(std::chrono::steady_clock::now() + 31s));
}

TEST_CASE("what travelled together counts as one flight of so many messages") {
  MetricsObserver metrics;
  Timing timing;
  timing.grouping = Grouping::kPipeline;
  auto committed = event(Step::kMessageCommitted);
  committed.handler = "payment";
  committed.timing = &timing;
  timing.since_fetched = std::chrono::milliseconds(3);
  metrics.on_event(committed);
  metrics.on_event(committed);
  timing.commit = std::chrono::milliseconds(2);
  timing.messages = 3;
  metrics.on_event(committed);
  CHECK(metrics.commits().read().all == 1);
  CHECK(metrics.commits().read().sum == 2'000'000);
  CHECK(metrics.pipelines().read().sum == 3);
  CHECK(metrics.batches().read().all == 0);
  std::uint64_t messages = 0;
  metrics.since_fetched().each([&](const std::string& topic, std::int32_t, const Histogram& of) {
    CHECK(topic == "payments");
    messages += of.read().all;
  });
  CHECK(messages == 3);
  timing.grouping = Grouping::kBatch;
  timing.handler = std::chrono::milliseconds(1);
  timing.messages = 40;
  metrics.on_event(committed);
  CHECK(metrics.batches().read().sum == 40);
  CHECK(metrics.pipelines().read().all == 1);
  metrics.handlers().each([&](const std::string& handler, std::int32_t, const Histogram& of) {
    CHECK(handler == "payment");
    CHECK(of.read().sum == 1'000'000);
  });
}

TEST_CASE("threads that change from one partition to the other lose no count") {
  MetricsObserver metrics;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 20000; ++i)
        metrics.on_event(event(Step::kMessageCommitted, i % 7 < 4 ? 0 : 1, i % 2 == 0 ? "a" : "b"));
    });
  }
  for (auto& thread : threads)
    thread.join();
  CHECK(read(metrics, Tally::kApplied, 0) + read(metrics, Tally::kApplied, 1) == 80000);
  // Another one counts for itself, also on a thread that has counted here.
  metrics.on_event(event(Step::kMessageCommitted, 0, "a"));
  MetricsObserver other;
  other.on_event(event(Step::kMessageCommitted, 0, "a"));
  CHECK(read(other, Tally::kApplied, 0) == 1);
}
