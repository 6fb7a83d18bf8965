// The table of docs/architecture/partition.md, "Transitions".
#include "engine/phase.hpp"

#include <array>
#include <catch2/catch_test_macros.hpp>
#include <optional>

using pawl::engine::after;
using pawl::engine::Happening;
using pawl::engine::Phase;

namespace {

constexpr std::optional<Phase> kNothing;
constexpr std::array kPhases{Phase::kAcquiring, Phase::kPositioning, Phase::kRunning,
                             Phase::kStopped};

struct Row {
  Happening what;
  std::array<std::optional<Phase>, 4> next;
};

// clang-format off
constexpr std::array kTable{
    //                           acquiring             positioning           running               stopped
    Row{Happening::kGranted,      {Phase::kPositioning, kNothing,             kNothing,             kNothing}},
    Row{Happening::kSeekTaken,    {kNothing,            Phase::kRunning,      kNothing,             kNothing}},
    Row{Happening::kSeekAgain,    {kNothing,            kNothing,             Phase::kPositioning,  kNothing}},
    Row{Happening::kRest,         {kNothing,            kNothing,             Phase::kPositioning,  kNothing}},
    Row{Happening::kMakeRoom,     {kNothing,            kNothing,             Phase::kPositioning,  kNothing}},
    Row{Happening::kStop,         {Phase::kStopped,     Phase::kStopped,      Phase::kStopped,      Phase::kStopped}},
    Row{Happening::kAskAgain,     {Phase::kAcquiring,   Phase::kAcquiring,    Phase::kAcquiring,    Phase::kAcquiring}},
    Row{Happening::kTopicInDoubt, {kNothing,            Phase::kAcquiring,    Phase::kAcquiring,    kNothing}},
};
// clang-format on

}  // namespace

TEST_CASE("what happens to a partition leads to the phase that the table says") {
  for (const auto& row : kTable) {
    for (std::size_t i = 0; i < kPhases.size(); ++i) {
      CAPTURE(static_cast<int>(row.what), i);
      CHECK(after(kPhases.at(i), row.what) == row.next.at(i));
    }
  }
}

TEST_CASE("a partition runs only behind a grant of the register and a seek that Kafka took") {
  for (const auto phase : kPhases) {
    for (const auto& row : kTable) {
      if (after(phase, row.what) == Phase::kRunning) {
        CHECK(phase == Phase::kPositioning);
        CHECK(row.what == Happening::kSeekTaken);
      }
    }
  }
}
