#pragma once

#include <spdlog/spdlog.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "pawl/options.hpp"

namespace pawl::ops {

/// One line of the log before it has a format. What is empty or negative is left out.
struct LogLine {
  spdlog::level::level_enum level = spdlog::level::info;
  std::string_view event;      ///< a name for machines: "halted"
  std::string_view code = {};  ///< of a warning, as to_string(Warning) has it
  std::string_view topic = {};
  std::int32_t partition = -1;
  std::int64_t offset = -1;
  bool of_message = false;  ///< the offset is that of a message, not a position: text shows it
  std::optional<std::int64_t> message_offset = std::nullopt;  ///< as Event has it
  std::int64_t lag = -1;
  std::string_view key = {};  ///< only for lines of debug level
  std::string_view traceparent = {};
  std::string_view remote = {};  ///< the endpoint of a remote service
  std::string text = {};         ///< for people
  /// What the text says in figures, for machines.
  std::vector<std::pair<std::string_view, std::int64_t>> figures = {};
};

/// Makes the logger: stderr, every line flushed. Text is local time with its zone; JSON is one
/// object a line with UTC time.
[[nodiscard]] std::shared_ptr<spdlog::logger> make_logger(const LogOptions& options);

/// Writes a line in the logger's format. `group` is a field of every JSON object. The text of a
/// warning or an error is bounded.
void write(spdlog::logger& log, LogFormat format, const std::string& group, LogLine line);

}  // namespace pawl::ops
