#include "engine/leased_call.hpp"
#include "prelude.hpp"

using pawl::OnUnknown;
using pawl::engine::Beginning;
using pawl::engine::beginning_of;
using namespace std::chrono_literals;

TEST_CASE("how an attempt begins") {
  struct Row {
    OnUnknown on_unknown;
    std::optional<std::chrono::milliseconds> unknown_for;
    std::chrono::milliseconds remote_memory;
    Beginning expected;
  };
  const std::vector<Row> rows{
      {OnUnknown::kCall, std::nullopt, 0ms, Beginning::kCall},
      {OnUnknown::kReconcile, std::nullopt, 1s, Beginning::kCall},
      {OnUnknown::kHalt, std::nullopt, 0ms, Beginning::kCall},
      {OnUnknown::kCall, 0ms, 0ms, Beginning::kCall},
      {OnUnknown::kCall, 24h, 0ms, Beginning::kCall},
      {OnUnknown::kCall, 24h, 24h, Beginning::kCall},
      {OnUnknown::kCall, 24h + 1ms, 24h, Beginning::kHalt},
      {OnUnknown::kReconcile, 25h, 24h, Beginning::kReconcile},
      {OnUnknown::kReconcile, 0ms, 0ms, Beginning::kReconcile},
      {OnUnknown::kHalt, 0ms, 24h, Beginning::kHalt},
  };
  for (std::size_t i = 0; i < rows.size(); ++i) {
    CAPTURE(i);
    CHECK(beginning_of(rows[i].on_unknown, rows[i].unknown_for, rows[i].remote_memory) ==
          rows[i].expected);
  }
}
