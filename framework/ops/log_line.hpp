#pragma once

#include <spdlog/spdlog.h>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "pawl/options.hpp"

namespace pawl::ops {

using LogValue = std::variant<bool, std::int64_t, std::string>;

/// One line of the log before it has a format: `level event name=value ...: text`.
///
///   LogLine line{spdlog::level::info, "partition_revoked"};
///   line.add("topic", std::string("payments"));
struct LogLine {
  spdlog::level::level_enum level = spdlog::level::info;
  std::string_view event;  ///< of event_table()
  /// In their order; their names are those of field_table().
  std::vector<std::pair<std::string_view, LogValue>> fields = {};
  /// The cause, what pawl does now, and what an operator does. A line break stands before each
  /// command.
  std::string text = {};

  void add(std::string_view name, LogValue value) { fields.emplace_back(name, std::move(value)); }
  /// Nothing if it is empty.
  void add_text(std::string_view name, std::string_view value) {
    if (!value.empty())
      add(name, std::string(value));
  }
  /// Nothing if it is negative, which means unknown.
  void add_number(std::string_view name, std::int64_t value) {
    if (value >= 0)
      add(name, value);
  }
};

/// Without time and level. A value is quoted if it would not be one word. Only on a terminal a line
/// break of the text remains, and what follows it is indented: whatever a database or a broker
/// responds, it cannot look like another line of the log.
[[nodiscard]] std::string text_of(const LogLine& line, bool terminal);

/// The object without its opening brace, which the pattern writes with time and level. `group` is
/// empty if nothing is consumed.
[[nodiscard]] std::string json_of(const LogLine& line, const std::string& group,
                                  const std::string& instance);

/// Writes lines to stderr, each flushed. Text has local time with its zone; JSON is one object per
/// line with UTC time. Any thread.
class LogWriter {
 public:
  explicit LogWriter(const Options& options);

  [[nodiscard]] bool writes(spdlog::level::level_enum level) const;
  /// The text of a warning or an error is bounded.
  void write(LogLine line) const;

 private:
  const LogFormat format_;
  const std::string group_;
  const std::string instance_;
  const bool terminal_;
  const std::shared_ptr<spdlog::logger> log_;
};

}  // namespace pawl::ops
