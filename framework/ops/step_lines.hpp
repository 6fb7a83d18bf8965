#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "ops/log_line.hpp"
#include "ops/repeat_limiter.hpp"
#include "pawl/observer.hpp"
#include "pawl/options.hpp"

namespace pawl::ops {

/// The line of an event, as event_table() has its code and level. A first attempt that is retried
/// is a warning; further ones, and one whose consequence is the next event, are for level debug.
/// Nullopt: it has no line of its own, because a count or another event reports it.
[[nodiscard]] std::optional<LogLine> line_of(const Event& event,
                                             const InvocationOptions& invocation);

/// Its text, for log and alerts: the cause, what pawl does now if the event does not say it, and
/// the command that helps.
[[nodiscard]] std::string event_text(const Event& event, const InvocationOptions& invocation);

/// Whether such lines may come many times in a minute, and are counted then (RepeatLimiter).
[[nodiscard]] bool is_limited(const Event& event);

/// What such a line reports: partition and attempt do not matter, and without a SQLSTATE the text
/// does.
[[nodiscard]] Incident incident_of(const Event& event);

}  // namespace pawl::ops
