#include "ops/reference_pages.hpp"

#include <fmt/format.h>

#include <set>
#include <string_view>

#include "ops/alerts_message.hpp"
#include "ops/event_table.hpp"
#include "ops/metrics_text.hpp"
#include "pawl/observer.hpp"

namespace pawl::ops {
namespace {

std::set<std::string_view> warning_codes() {
  std::set<std::string_view> codes;
  for (int i = 0; i <= static_cast<int>(Warning::kSequenceBehind); ++i)
    codes.insert(to_string(static_cast<Warning>(i)));
  return codes;
}

std::string event_rows(bool of_warnings) {
  const auto warnings = warning_codes();
  std::string text = "| Event | Level | Meaning |\n|---|---|---|\n";
  for (const EventRow& row : event_table()) {
    if (warnings.contains(row.code) == of_warnings)
      text += fmt::format("| `{}` | {} | {} |\n", row.code, level_name(row.level), row.meaning);
  }
  return text;
}

}  // namespace

std::string events_page() {
  std::string text =
      "# Events\n\n"
      "All events of pawl's log, with their levels and fields. The runbook explains what to do: "
      "[Events and alerts](../runbook/events.md), [Warnings](../runbook/warnings.md).\n\n"
      "A line of the log is `level event key=value ...: cause`. With `log.format = \"json\"`, each "
      "line is an object: `event` contains the event, `msg` the cause, and the fields have the "
      "same names. The level `-` marks events that only a C++ `Observer` receives.\n\n"
      "## Events of messages, partitions, and processes\n\n";
  text += event_rows(false);
  text +=
      "\n## Warnings\n\n"
      "Warnings of pawl about its own operation. The metric `pawl_warnings_total` counts them by "
      "code.\n\n";
  text += event_rows(true);
  text +=
      "\n## Alerts\n\n"
      "[Observe](../observe.md#alerts) describes how pawl sends alerts.\n\n"
      "| Alert | Meaning |\n|---|---|\n";
  for (const AlertRow& row : alert_table())
    text += fmt::format("| `{}` | {} |\n", row.kind, row.meaning);
  text += "\n## Fields\n\n| Field | Meaning |\n|---|---|\n";
  for (const FieldRow& row : field_table())
    text += fmt::format("| `{}` | {} |\n", row.name, row.meaning);
  return text;
}

std::string metrics_page() {
  std::string text =
      "# Metrics\n\n"
      "All metrics that `pawl run` and `pawl relay` serve at `/metrics` "
      "([Observe](../observe.md#endpoints)).\n\n"
      "Durations are in seconds. Counters start at 0 with each process. A metric without a known "
      "value has no line. Use `max by (topic, partition)` for gauges and `sum by (topic)` for "
      "rates, because partitions move between processes.\n\n"
      "| Metric | Type and labels | Meaning |\n|---|---|---|\n";
  for (const MetricRow& row : metric_table()) {
    text += fmt::format("| `{}` | {}{} | {} |\n", row.name, row.type,
                        row.labels.empty() ? "" : fmt::format(": {}", row.labels), row.help);
  }
  return text;
}

}  // namespace pawl::ops
