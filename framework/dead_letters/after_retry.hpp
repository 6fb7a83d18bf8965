#pragma once

#include "dead_letters/replay.hpp"

namespace pawl::engine {

/// What becomes of a dead letter that was tried again by itself.
enum class AfterRetry {
  kResolved,
  kTriedLater,  ///< as its times say
  kWaits,       ///< for an operator
  kGivenBack,   ///< the try says nothing about it
};

/// `last`: there are no more times. Pure; docs/delayed-retries.md is for operators.
[[nodiscard]] AfterRetry after_retry(const ReplayResult& result, bool last);

}  // namespace pawl::engine
