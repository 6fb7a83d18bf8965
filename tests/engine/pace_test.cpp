#include "engine/pace.hpp"

#include <catch2/catch_test_macros.hpp>

using namespace std::chrono_literals;
using pawl::engine::Action;
using pawl::engine::Attempt;
using pawl::engine::BatchPace;
using pawl::engine::Pace;
using pawl::engine::PipelinePace;
using pawl::engine::Undertaking;
using Company = Action::Company;

namespace {

PipelinePace grown(std::size_t most) {
  PipelinePace pace(most);
  while (pace.size() < most)
    pace.landed(pace.size(), true, 1ms);
  return pace;
}

Attempt attempt(Undertaking what, std::size_t messages) {
  Attempt attempt{what};
  attempt.messages = messages;
  return attempt;
}

Pace grown_pace() {
  BatchPace batch(64, 1s);
  while (batch.size() < 64)
    batch.passed(batch.size(), -1, false, 0s);
  return {grown(64), std::move(batch)};
}

}  // namespace

TEST_CASE("a pipeline begins small and doubles while all of it lands") {
  PipelinePace pace(50);
  CHECK(pace.size() == PipelinePace::kFirst);
  pace.landed(4, true, 1ms);
  CHECK(pace.size() == 8);
  pace.landed(3, true, 1ms);  // no more were there: it says nothing of longer ones
  CHECK(pace.size() == 8);
  for (int i = 0; i < 5; ++i)
    pace.landed(pace.size(), true, 1ms);
  CHECK(pace.size() == 50);
}

TEST_CASE("a pipeline is never longer than consumer.pipeline, from the first on") {
  CHECK(PipelinePace(1).size() == 1);
  CHECK(PipelinePace(2).size() == 2);
  PipelinePace pace(3);
  pace.landed(3, true, 1ms);
  CHECK(pace.size() == 3);
}

TEST_CASE("behind a message that did not land the next goes alone, then shorter pipelines") {
  auto pace = grown(64);
  pace.passed(10);
  pace.landed(10, false, 1ms);
  CHECK(pace.size() == 1);
  pace.passed(1);
  CHECK(pace.size() == 32);
}

TEST_CASE("where no pipeline lands more and more go alone, and fewer once one does") {
  auto pace = grown(64);
  for (const std::size_t alone : {4, 8, 16, 32, 64, 128, 256, 256}) {
    pace.landed(0, false, 1ms);
    for (std::size_t i = 0; i < alone; ++i) {
      CHECK(pace.size() == 1);
      pace.passed(1);
    }
    CHECK(pace.size() > 1);
  }
  pace.landed(2, true, 1ms);
  pace.landed(0, false, 1ms);
  pace.passed(4);
  CHECK(pace.size() > 1);
}

TEST_CASE("a pipeline that takes long becomes as long as fits, but never one message") {
  auto pace = grown(64);
  pace.landed(64, true, 400ms);
  CHECK(pace.size() == 16);
  pace.landed(16, true, 100s);
  CHECK(pace.size() == PipelinePace::kShortest);
}

TEST_CASE("how many go together next follows from what failed") {
  auto pace = grown_pace();
  SECTION("nothing") {
    pace.failed(attempt(Undertaking::kPipeline, 8), Company::kAsBefore);
    CHECK(pace.pipeline().size() == 64);
    CHECK(pace.batch().size() == 64);
  }
  SECTION("a pipeline: one goes alone, to say which of them it is") {
    pace.failed(attempt(Undertaking::kPipeline, 8), Company::kHalved);
    CHECK(pace.pipeline().size() == 1);
    pace.passed(1, 5, false, 1ms);
    CHECK(pace.pipeline().size() == 64);
    CHECK(pace.batch().size() == 64);
  }
  SECTION("a batch: half of it, until the culprit is alone") {
    pace.failed(attempt(Undertaking::kBatch, 8), Company::kHalved);
    CHECK(pace.batch().size() == 4);
    CHECK(pace.pipeline().size() == 64);
  }
  SECTION("a batch that met others is shorter from then on") {
    pace.failed(attempt(Undertaking::kBatch, 40), Company::kFewer);
    CHECK(pace.batch().size() == 20);
  }
  SECTION("a pipeline that a connection broke under: each of its messages goes alone") {
    auto broke = attempt(Undertaking::kPipeline, 3);
    broke.failure.kind = pawl::postgres::FailureClass::kConnection;
    pace.failed(broke, Company::kAlone);
    for (int i = 0; i < 3; ++i) {
      CHECK(pace.pipeline().size() == 1);
      pace.passed(1, i, false, 1ms);
    }
    CHECK(pace.pipeline().size() == PipelinePace::kShortest);
  }
  SECTION("a batch that a connection broke under: each of its messages goes alone") {
    pace.failed(attempt(Undertaking::kBatch, 2), Company::kAlone);
    CHECK(pace.batch().size() == 1);
    CHECK(pace.pipeline().size() == 64);
  }
}

TEST_CASE("a batch waits for more up to the time that was given, and is looked at meanwhile") {
  auto pace = grown_pace();
  const Pace::Clock::time_point begun{};
  CHECK_FALSE(pace.lingers(begun, 0ms));
  CHECK_FALSE(pace.look_again());

  CHECK(pace.lingers(begun, 160ms));
  CHECK(pace.look_again() == begun + 10ms);
  CHECK(pace.lingers(begun + 155ms, 160ms));
  CHECK(pace.look_again() == begun + 160ms);
  CHECK_FALSE(pace.lingers(begun + 160ms, 160ms));

  pace.passed(3, 3, false, 1ms);  // the next one begins to wait anew
  CHECK_FALSE(pace.look_again());
  CHECK(pace.lingers(begun + 170ms, 160ms));
}
