#pragma once

#include <chrono>
#include <string>

#include "outbox/store/watch.hpp"
#include "pawl/options.hpp"

namespace pawl::engine {

/// What is to be told of a look.
enum class LateNews { kNone, kLate, kCaughtUp };

/// `alerts`: this process sends alerts. What only a log was told is told again by the first process
/// that can tell more; and who got an alert gets the end of it as one.
[[nodiscard]] LateNews late_news(ledger::LateTold told, bool late, bool alerts);
/// What was told once the news is out.
[[nodiscard]] ledger::LateTold told_after(LateNews news, bool alerts);

/// "the oldest message of the outbox waits for 6m (outbox.alert_age = 5m) ...", and what to do.
[[nodiscard]] std::string late_text(const InvocationOptions& invocation,
                                    const ledger::OutboxLook& look,
                                    std::chrono::milliseconds alert_age);

}  // namespace pawl::engine
