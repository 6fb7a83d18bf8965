#include "outbox/lateness.hpp"

#include <fmt/format.h>

#include "config/invocation.hpp"
#include "config/units.hpp"
#include "ops/catching_up.hpp"

namespace pawl::engine {

LateNews late_news(ledger::LateTold told, bool late, bool alerts) {
  using ledger::LateTold;
  // Nobody but an alert reaches who got one.
  if (told == LateTold::kAlerted && !alerts)
    return LateNews::kNone;
  if (late) {
    const bool known = told == LateTold::kAlerted || (told == LateTold::kLogged && !alerts);
    return known ? LateNews::kNone : LateNews::kLate;
  }
  return told == LateTold::kNothing ? LateNews::kNone : LateNews::kCaughtUp;
}

ledger::LateTold told_after(LateNews news, bool alerts) {
  if (news != LateNews::kLate)
    return ledger::LateTold::kNothing;
  return alerts ? ledger::LateTold::kAlerted : ledger::LateTold::kLogged;
}

std::string late_text(const InvocationOptions& invocation, const ledger::OutboxLook& look,
                      std::chrono::milliseconds alert_age) {
  const auto waits = look.oldest ? look.at - *look.oldest : std::chrono::milliseconds{0};
  return fmt::format(
      "the oldest message waits for {} (outbox.alert_age = {}){}. Show the state:\n  {}",
      ops::span_text(std::chrono::duration_cast<std::chrono::seconds>(waits).count()),
      config::format_duration(alert_age),
      look.relayed
          ? ", although a process publishes. The log of that process has the cause"
          : fmt::format(", and no process publishes. Set outbox.relay = \"on\", or start `{}`. If "
                        "one runs, its log has the cause",
                        command_text(invocation, "relay")),
      command_text(invocation, "outbox status"));
}

}  // namespace pawl::engine
