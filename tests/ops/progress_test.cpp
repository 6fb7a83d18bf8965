#include "ops/progress.hpp"

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

using namespace std::chrono_literals;
using pawl::Event;
using pawl::PartitionSnapshot;
using pawl::Step;
using namespace pawl::ops;

namespace {

PartitionSnapshot partition(std::optional<std::int64_t> next, std::optional<std::int64_t> end) {
  PartitionSnapshot snapshot{{"payments", 3}};
  snapshot.next = next;
  snapshot.log_end = end;
  return snapshot;
}

}  // namespace

TEST_CASE("what is told of a message counts once, and steps on its way do not") {
  Counters counters;
  for (const auto step :
       {Step::kMessageFetched, Step::kKeyClaimed, Step::kMessageCommitted, Step::kMessageCommitted,
        Step::kMessageDeduplicated, Step::kMessageSkipped, Step::kMessageDeadLettered,
        Step::kMessageParked, Step::kRetryScheduled, Step::kRetryScheduled, Step::kRetrySucceeded,
        Step::kAttemptFailed, Step::kPartitionHalted, Step::kWarning})
    counters.count(Event{step});
  // Nothing counts these.
  for (const auto* const kind : {"contention", "resource"}) {
    Event waits{Step::kAttemptFailed};
    waits.reason = kind;
    counters.count(waits);
  }
  CHECK(counters.read() == Counts{7, 1, 1, 1, 1, 2, 1});
}

TEST_CASE("the lag is known when each partition's is, and of no partition it is not") {
  CHECK(standing({}) == Standing{0, 0, 0, std::nullopt});
  CHECK(standing({partition(3, 10), partition(7, 7)}) == Standing{2, 0, 0, 7});
  CHECK(standing({partition(3, 10), partition(7, std::nullopt)}) ==
        Standing{2, 0, 0, std::nullopt});
  CHECK(standing({partition(std::nullopt, 5), partition(3, 10)}) ==
        Standing{2, 0, 0, std::nullopt});
  // A log that was cut behind us does not take from the others' lag.
  CHECK(standing({partition(12, 10), partition(3, 10)}) == Standing{2, 0, 0, 7});
  auto halted = partition(3, 10);
  halted.halted = true;
  auto paused = partition(3, 10);
  paused.paused = true;
  CHECK(standing({halted, paused}) == Standing{2, 1, 1, 14});
}

TEST_CASE("the progress line has what was done since the last one, and how long it will take") {
  Progress before;
  before.counts.processed = 100;
  before.at = {2, 0, 0, 300};
  auto now = before;
  now.assigned_once = true;
  now.counts = {200, 10, 0, 0, 0, 4, 3};
  now.at.lag = 200;
  before.places = places({partition(0, 300)});
  now.places = places({partition(100, 300)});
  CHECK(text_of(progress_line(before, now, 10s), false) ==
        "progress_reported processed=200 processed_per_s=10 lag=200 eta_s=20 duplicates=10 "
        "skipped=0 retries_scheduled=4 dead_letters=0 parked=0 failed_attempts=3 partitions=2 "
        "halted=0 paused=0");
}

TEST_CASE(
    "the progress line promises no end of the lag while a partition is halted or paused, or a "
    "server is unreachable") {
  const auto other = [](std::int64_t next) {
    auto snapshot = partition(next, 400);
    snapshot.partition.partition = 4;
    return snapshot;
  };
  Progress before;
  before.places = places({partition(3, 9), other(100)});
  Progress now;
  now.at = {2, 0, 0, 206};
  now.places = places({partition(3, 9), other(200)});
  const auto promises = [&](const std::vector<Unreachable>& unreachable = {}) {
    return text_of(progress_line(before, now, 10s, unreachable), false).find(" eta_s=") !=
           std::string::npos;
  };
  CHECK_FALSE(promises());
  now.places = places({partition(5, 9), other(200)});
  CHECK(promises());
  CHECK_FALSE(promises({{.server = "PostgreSQL",
                         .field = "database_unreachable_s",
                         .repeats_field = "database_unreachable_repeats",
                         .lasts = 2s,
                         .cause = "connection refused"}}));
  auto halted = partition(5, 9);
  halted.halted = true;
  now.places = places({halted, other(200)});
  CHECK_FALSE(promises());
  auto paused = partition(5, 9);
  paused.paused = true;
  now.places = places({paused, other(200)});
  CHECK_FALSE(promises());
}

TEST_CASE("the progress line has halts, dead letters, and no lag that is not known") {
  Progress now;
  now.assigned_once = true;
  now.counts.dead = 2;
  now.counts.parked = 1;
  now.at = {4, 1, 2, std::nullopt};
  CHECK(text_of(progress_line({}, now, 1s), false) ==
        "progress_reported processed=0 processed_per_s=0 duplicates=0 skipped=0 "
        "retries_scheduled=0 dead_letters=2 parked=1 failed_attempts=0 partitions=4 halted=1 "
        "paused=2");
}

TEST_CASE("the progress line names each unreachable server, for how long, and the latest cause") {
  const std::vector<Unreachable> unreachable{
      {"PostgreSQL", "database_unreachable_s", "database_unreachable_repeats", 90s, 7,
       "password authentication failed"},
      {"Kafka", "kafka_unreachable_s", "kafka_unreachable_repeats", 5s, 0, "timed out"}};
  const std::string expected =
      " database_unreachable_s=90 database_unreachable_repeats=7 kafka_unreachable_s=5 "
      "kafka_unreachable_repeats=0: PostgreSQL is unreachable: password authentication failed. "
      "Kafka is unreachable: timed out";
  Progress now;
  now.at = {3, 0, 0, 1};
  CHECK(text_of(progress_line({}, now, 1s, unreachable), false).ends_with(" paused=0" + expected));
  CHECK(text_of(relayed_line({}, {}, 1s, unreachable), false).ends_with(" shards=0" + expected));
}

TEST_CASE("the progress line names three endpoints and locks for which messages wait") {
  using Kind = pawl::Condition::Kind;
  const auto condition = [](Kind kind, const std::string& subject, bool lasting = true) {
    pawl::Condition one;
    one.kind = kind;
    one.subject = subject;
    one.cause = "timed out";
    one.lasting = lasting;
    return one;
  };
  std::vector<pawl::Condition> conditions{
      condition(Kind::kKafkaUnreachable, "broker:9092"),
      condition(Kind::kRemoteServiceUnreachable, "https://passes.example", false),
      condition(Kind::kRemoteServiceUnreachable, "https://api.example"),
      condition(Kind::kPartitionBlocked, "payments[7]")};
  const auto ends_with = [&](const std::string& end) {
    CHECK_THAT(text_of(progress_line({}, {}, 1s, {}, conditions), false),
               Catch::Matchers::EndsWith(end));
  };
  ends_with(
      " paused=0 conditions=2: https://api.example is unreachable: timed out. payments[7] waits "
      "for a lock: timed out");
  conditions.push_back(condition(Kind::kPartitionBlocked, "payments[8]"));
  conditions.push_back(condition(Kind::kPartitionBlocked, "payments[9]"));
  ends_with("payments[8] waits for a lock: timed out");
  CHECK(text_of(progress_line({}, {}, 1s, {}, conditions), false).find(" conditions=4: ") !=
        std::string::npos);
  conditions.resize(2);
  ends_with(" paused=0");
}

TEST_CASE("the last line has the counts since the start") {
  CHECK(text_of(stopped_line({9583, 7, 0, 43, 3595, 1131, 12}, 820s), false) ==
        "consumer_stopped processed=9583 duration_s=820 duplicates=7 skipped=0 "
        "retries_scheduled=1131 dead_letters=43 parked=3595");
}

TEST_CASE(
    "what is told of the outbox counts messages, rejected ones, and the shards that are held") {
  RelayCounters counters;
  const auto tell = [&](Step step, std::int64_t messages = -1) {
    pawl::Event event{step};
    event.messages = messages;
    counters.count(event);
  };
  tell(Step::kOutboxShardAcquired, 0);
  tell(Step::kOutboxShardAcquired, 3);
  tell(Step::kOutboxBatchFinished, 3);
  tell(Step::kOutboxBatchStarted, 20);
  tell(Step::kOutboxMessageRejected);
  tell(Step::kOutboxBatchFinished, 19);
  tell(Step::kOutboxShardReleased);
  tell(Step::kMessageCommitted);
  CHECK(counters.read() == Relayed{22, 1, 1});
}

TEST_CASE("the progress line of a relay has messages, rate, and shards") {
  CHECK(text_of(relayed_line({100, 0, 4, 0}, {300, 1, 4, 0}, 10s), false) ==
        "progress_reported published=300 published_per_s=20 rejected=1 shards=4");
}
