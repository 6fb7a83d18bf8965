#include "ops/progress.hpp"

#include <algorithm>
#include <catch2/catch_test_macros.hpp>

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
       {Step::kFetched, Step::kClaimed, Step::kCommitted, Step::kCommitted, Step::kDuplicate,
        Step::kSkipped, Step::kDeadLettered, Step::kParked, Step::kRetryLater, Step::kRetryLater,
        Step::kRetried, Step::kFailed, Step::kHalted, Step::kWarning})
    counters.count(Event{step});
  // Nothing counts these.
  for (const auto* const kind : {"contention", "resource"}) {
    Event waits{Step::kFailed};
    waits.failure_class = kind;
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

TEST_CASE("the progress line says what was done since the last one, and how long it will take") {
  Progress before;
  before.counts.processed = 100;
  before.at = {2, 0, 0, 300};
  auto now = before;
  now.assigned_once = true;
  now.counts = {200, 10, 0, 0, 0, 0, 3};
  now.at.lag = 200;
  before.places = places({partition(0, 300)});
  now.places = places({partition(100, 300)});
  const auto line = progress_line(before, now, 10s);
  CHECK(
      line.text ==
      "200 messages processed (10/s), 10 duplicates, 0 skipped, 3 failed tries; 2 partitions, lag "
      "200, caught up in 20 s");
  CHECK(line.lag == 200);
  now.counts.later = 4;
  CHECK(progress_line(before, now, 10s)
            .text.find(" 0 skipped, 4 times put off for later, 3 failed") != std::string::npos);
  CHECK(std::ranges::count(line.figures,
                           std::pair<std::string_view, std::int64_t>("eta_seconds", 20)) == 1);
}

TEST_CASE(
    "the progress line promises no end of the lag while a partition stands, or a server is away") {
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
    const auto line = progress_line(before, now, 10s, unreachable);
    const bool has_figure = std::ranges::any_of(
        line.figures, [](const auto& figure) { return figure.first == "eta_seconds"; });
    CHECK(has_figure == (line.text.find("caught up in") != std::string::npos));
    return has_figure;
  };
  CHECK_FALSE(promises());
  now.places = places({partition(5, 9), other(200)});
  CHECK(promises());
  CHECK_FALSE(promises({{"PostgreSQL", 2s, "connection refused"}}));
  auto halted = partition(5, 9);
  halted.halted = true;
  now.places = places({halted, other(200)});
  CHECK_FALSE(promises());
  auto paused = partition(5, 9);
  paused.paused = true;
  now.places = places({paused, other(200)});
  CHECK_FALSE(promises());
}

TEST_CASE("the progress line names what stands, what was set aside, and what is not known") {
  Progress now;
  CHECK(progress_line({}, now, 1s).text ==
        "0 messages processed (0/s), 0 duplicates, 0 skipped, 0 failed tries; no partition is "
        "assigned yet, lag not known");
  CHECK(progress_line({}, now, 1s).lag == -1);
  now.assigned_once = true;
  now.counts.dead = 2;
  now.counts.parked = 1;
  now.at = {4, 1, 2, std::nullopt};
  CHECK(
      progress_line({}, now, 1s).text ==
      "0 messages processed (0/s), 0 duplicates, 0 skipped, 2 dead-lettered and 1 parked since the "
      "start, 0 failed tries; 4 partitions (1 HALTED, 2 paused), lag not known");
  now.at = {};
  CHECK(progress_line({}, now, 1s).text.find("no partition is assigned, ") != std::string::npos);
}

TEST_CASE("the progress line names what cannot be reached, for how long, and the latest reason") {
  Progress now;
  now.assigned_once = true;
  now.at = {3, 0, 0, 1};
  CHECK(progress_line(
            {}, now, 1s,
            {{"PostgreSQL", 90s, "password authentication failed"}, {"Kafka", 5s, "timed out"}})
            .text ==
        "0 messages processed (0/s), 0 duplicates, 0 skipped, 0 failed tries; 3 partitions, lag 1; "
        "PostgreSQL has been unreachable for 90 s: password authentication failed; Kafka has been "
        "unreachable for 5 s: timed out");
}

TEST_CASE("what is told of the outbox counts messages, refused ones, and the lanes that are held") {
  RelayCounters counters;
  const auto tell = [&](Step step, std::int64_t messages = -1) {
    pawl::Event event{step};
    event.messages = messages;
    counters.count(event);
  };
  tell(Step::kOutboxAcquired, 0);
  tell(Step::kOutboxAcquired, 3);
  tell(Step::kOutboxEnded, 3);
  tell(Step::kOutboxBegun, 20);
  tell(Step::kOutboxRefused);
  tell(Step::kOutboxEnded, 19);
  tell(Step::kOutboxReleased);
  tell(Step::kCommitted);
  CHECK(counters.read() == Relayed{22, 1, 1});
}

TEST_CASE("the progress line of who publishes says how much, how fast, and by how many lanes") {
  const auto line = relayed_line({100, 0, 4}, {300, 1, 4}, 10s);
  CHECK(line.text ==
        "300 messages of the outbox published (20/s), 1 refused; 4 lanes are this process's");
  CHECK(relayed_line({}, {}, 1s).text ==
        "0 messages of the outbox published (0/s), 0 refused; no lane is this process's");
  const std::vector<std::pair<std::string_view, std::int64_t>> figures{
      {"published", 300}, {"per_second", 20}, {"refused", 1}, {"lanes", 4}};
  CHECK(line.figures == figures);
}
