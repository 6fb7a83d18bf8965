#pragma once

#include <spdlog/common.h>

#include <span>
#include <string_view>

#include "pawl/observer.hpp"

namespace pawl::ops {

/// One event of the log, as docs/reference/events.md lists it.
struct EventRow {
  std::string_view code;
  /// info: a state changed. warn: degraded, but handled. error: needs attention. off: counted, or
  /// reported by another event.
  spdlog::level::level_enum level;
  std::string_view meaning;
};

/// All events: those of the process, then of each Step but kWarning, then of each Warning. The only
/// place that has their codes and levels.
[[nodiscard]] std::span<const EventRow> event_table();

/// The row of a code. Throws std::logic_error if there is none.
[[nodiscard]] const EventRow& event_row(std::string_view code);

/// The row of an event: of its step, or of its warning.
[[nodiscard]] const EventRow& event_row(const Event& event);

/// "info", "warn", "error", "debug", "trace"; "-" for off.
[[nodiscard]] std::string_view level_name(spdlog::level::level_enum level);

/// A field of a log line, or of an alert.
struct FieldRow {
  std::string_view name;
  std::string_view meaning;
};

/// All fields of the log's lines.
[[nodiscard]] std::span<const FieldRow> field_table();

}  // namespace pawl::ops
