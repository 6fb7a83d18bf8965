#include "engine/batch_pace.hpp"

#include "prelude.hpp"

using pawl::engine::BatchPace;

namespace {

/// One that has grown as far as it may.
BatchPace grown(std::size_t most, BatchPace::Duration longest = 1s) {
  BatchPace pace(most, longest);
  while (pace.size() < most)
    pace.passed(pace.size(), -1, false, 0s);
  return pace;
}

/// What a worker does until nothing of `messages` is left: offsets from 0, of which `poison` fails
/// whenever it is not alone, and when it is alone is set aside after a failed attempt.
struct Walk {
  explicit Walk(std::size_t most) : pace(grown(most)) {}

  void over(std::size_t messages, std::size_t poison) {
    for (std::size_t at = 0; at < messages;) {
      const auto size = std::min(pace.size(), messages - at);
      const bool poisoned = at <= poison && poison < at + size;
      if (poisoned && size > 1) {
        pace.failed(size);
        ++failures;
        continue;
      }
      pace.passed(size, static_cast<std::int64_t>(at + size - 1), poisoned, 0s);
      at += size;
      ++transactions;
    }
  }

  BatchPace pace;
  int failures = 0;
  int transactions = 0;
};

}  // namespace

TEST_CASE("one message that fails is found by halving, wherever it stands") {
  for (const std::size_t poison : {0U, 1U, 250U, 498U, 499U}) {
    CAPTURE(poison);
    Walk walk(500);
    walk.over(2000, poison);
    CHECK(walk.failures <= 9);
    CHECK(walk.transactions <= 3 + 10);
    CHECK(walk.pace.size() == 500);
  }
}

TEST_CASE("a batch that fails while each of its messages is fine becomes smaller") {
  auto pace = grown(8);
  pace.failed(8);
  CHECK(pace.size() == 4);
  pace.passed(4, 3, false, 0s);
  CHECK(pace.size() == 2);
  pace.passed(2, 5, false, 0s);
  CHECK(pace.size() == 1);
  pace.passed(1, 6, false, 0s);
  pace.passed(1, 7, false, 0s);
  CHECK(pace.size() == 4);
  // And that size is seldom tried again.
  for (std::size_t i = 0; i < 2 * BatchPace::kGoodOnes; ++i)
    pace.passed(4, 8, false, 0s);
  CHECK(pace.size() == 4);
  for (std::size_t i = 0; i < BatchPace::kMostPatience; ++i)
    pace.passed(4, 8, false, 0s);
  CHECK(pace.size() == 8);
}

TEST_CASE("batches begin small and double as long as they are full") {
  BatchPace pace(500, 1s);
  CHECK(pace.size() == BatchPace::kFirst);
  pace.passed(BatchPace::kFirst - 1, 0, false, 0s);
  CHECK(pace.size() == BatchPace::kFirst);
  for (const std::size_t size : {64, 128, 256, 500}) {
    pace.passed(pace.size(), 0, false, 0s);
    CHECK(pace.size() == size);
  }
  CHECK(BatchPace(7, 1s).size() == 7);
}

// Else a handler for which 500 are too many runs into its limit with each batch that has recovered.
TEST_CASE("a batch holds what its time allows") {
  BatchPace pace(500, 1s);
  // 10 ms a message: 100 of them.
  for (int i = 0; i < 100; ++i) {
    const auto took = pace.size() * 10ms;
    REQUIRE(took < 2s);
    pace.passed(pace.size(), 0, false, took);
  }
  CHECK(pace.size() == 64);
  pace.passed(64, 0, false, 4s);
  CHECK(pace.size() == 16);
  // One that is slow says nothing about many.
  pace.passed(1, 0, false, 60s);
  CHECK(pace.size() == 16);
}

TEST_CASE("what breaks the connection only together, twice, goes in smaller batches") {
  auto pace = grown(100);
  const auto break_with = [&pace](std::size_t messages) {
    pace.run_alone(messages);
    for (std::size_t i = 0; i < messages; ++i) {
      REQUIRE(pace.size() == 1);
      pace.passed(1, 0, false, 0s);
    }
  };
  break_with(100);
  CHECK(pace.size() == 100);
  pace.passed(100, 0, false, 0s);
  break_with(100);
  CHECK(pace.size() == 100);
  break_with(90);
  CHECK(pace.size() == 45);
}

TEST_CASE("what failed is not held against the messages that come in its place") {
  auto pace = grown(100);
  pace.run_alone(100);
  pace.forget_failures();
  CHECK(pace.size() == 100);
  pace.failed(100);
  pace.forget_failures();
  CHECK(pace.size() == 100);
}

TEST_CASE("a size that was blamed is forgiven once it passes, and others grow as ever") {
  auto pace = grown(256);
  pace.failed(256);
  pace.passed(128, 0, false, 0s);
  pace.passed(128, 0, false, 0s);
  CHECK(pace.size() == 128);
  pace.contended(64);
  for (const std::size_t size : {64, 128}) {
    for (std::size_t i = 0; i < BatchPace::kGoodOnes; ++i)
      pace.passed(pace.size(), 0, false, 0s);
    CHECK(pace.size() == size);
  }
  for (std::size_t i = 1; i < BatchPace::kGoodOnes * BatchPace::kGoodOnes; ++i)
    pace.passed(128, 0, false, 0s);
  CHECK(pace.size() == 128);
  pace.passed(128, 0, false, 0s);
  CHECK(pace.size() == 256);
  pace.passed(256, 0, false, 0s);
  pace.contended(256);
  for (std::size_t i = 0; i < BatchPace::kGoodOnes; ++i)
    pace.passed(128, 0, false, 0s);
  CHECK(pace.size() == 256);
}

TEST_CASE("contention halves at once, down to one, and the size grows slowly again") {
  auto pace = grown(500);
  // It counts what was in the batch, not what could have been.
  pace.contended(40);
  CHECK(pace.size() == 20);
  for (int i = 0; i < 10; ++i)
    pace.contended(pace.size());
  CHECK(pace.size() == 1);
  for (std::size_t i = 1; i < BatchPace::kGoodOnes; ++i)
    pace.passed(1, 0, false, 0s);
  CHECK(pace.size() == 1);
  pace.passed(1, 0, false, 0s);
  CHECK(pace.size() == 2);
  for (std::size_t i = 0; i < 100 * BatchPace::kGoodOnes; ++i)
    pace.passed(pace.size(), 0, false, 0s);
  CHECK(pace.size() == 500);
}

TEST_CASE("what was in hand when a connection broke runs alone, and so do conflicts") {
  auto pace = grown(100);
  pace.run_alone(3);
  for (int i = 0; i < 3; ++i) {
    CHECK(pace.size() == 1);
    pace.passed(1, i, i == 1, 0s);
  }
  // One of them was it.
  CHECK(pace.size() == 100);
  pace.run_alone_at({5, 9});
  CHECK(pace.runs_alone(5));
  CHECK(pace.runs_alone(9));
  pace.passed(3, 5, false, 0s);
  CHECK_FALSE(pace.runs_alone(5));
  CHECK(pace.runs_alone(9));
}
