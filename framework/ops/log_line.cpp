#include "ops/log_line.hpp"

#include <fmt/format.h>
#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/sinks/stdout_sinks.h>

#include <nlohmann/json.hpp>

#include "message/traceparent.hpp"
#include "text/bounded.hpp"

namespace pawl::ops {
namespace {

/// Warnings and errors begin with what the runbook goes by, and end with their text, which may be a
/// command to be pasted.
std::string as_text(const LogLine& line) {
  const bool bad = line.level >= spdlog::level::warn;
  std::string where;
  if (!line.topic.empty()) {
    where = line.partition < 0 ? std::string(line.topic)
                               : fmt::format("{} [{}]", line.topic, line.partition);
    if (line.of_message)
      where += fmt::format(" offset {}", line.offset);
  }
  const auto lag = line.lag >= 0 && !line.topic.empty() ? fmt::format(", lag {}", line.lag) : "";
  const auto key = line.key.empty() ? "" : fmt::format(", key \"{}\"", line.key);
  const auto trace =
      line.traceparent.empty() ? "" : fmt::format(", traceparent {}", line.traceparent);
  const auto known = lag + key + trace;
  const auto* separator = where.empty() ? "" : ": ";
  const auto word = line.code.empty() ? line.event : line.code;
  auto text = bad ? fmt::format("{}{}{}{}", where, known, separator, line.text)
                  : fmt::format("{}{}{}{}", where, separator, line.text, known);
  if (bad && !word.empty())
    text = fmt::format("[{}] {}", word, text);
  // A line of the log is one line, whatever a database or a broker answered.
  for (auto& c : text) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7F)
      c = ' ';
  }
  return text;
}

/// The object without its opening brace: the pattern writes that, with time and level.
std::string as_json(const std::string& group, const LogLine& line) {
  nlohmann::ordered_json object;
  object["event"] = line.event;
  if (!line.code.empty())
    object["code"] = line.code;
  // Empty: nothing is consumed, `relay` has a configuration of its own.
  if (!group.empty())
    object["group"] = group;
  if (!line.topic.empty())
    object["topic"] = line.topic;
  if (line.partition >= 0)
    object["partition"] = line.partition;
  if (line.offset >= 0)
    object["offset"] = line.offset;
  if (line.message_offset)
    object["message_offset"] = *line.message_offset;
  if (!line.remote.empty())
    object["remote_service"] = line.remote;
  if (line.lag >= 0)
    object["lag"] = line.lag;
  if (!line.key.empty())
    object["key"] = line.key;
  if (!line.traceparent.empty()) {
    object["trace_id"] = message::trace_id(line.traceparent);
    object["traceparent"] = line.traceparent;
  }
  for (const auto& [name, number] : line.figures)
    object[std::string(name)] = number;
  if (!line.text.empty())
    object["detail"] = line.text;
  return object.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace).substr(1);
}

}  // namespace

std::shared_ptr<spdlog::logger> make_logger(const LogOptions& options) {
  std::shared_ptr<spdlog::sinks::sink> sink;
  if (options.format == LogFormat::kJson) {
    sink = std::make_shared<spdlog::sinks::stderr_sink_mt>();
    sink->set_formatter(std::make_unique<spdlog::pattern_formatter>(
        R"({"ts":"%Y-%m-%dT%H:%M:%S.%eZ","level":"%l",%v)", spdlog::pattern_time_type::utc));
  } else {
    // Colours only on a terminal.
    sink = std::make_shared<spdlog::sinks::stderr_color_sink_mt>();
    sink->set_pattern("%Y-%m-%dT%H:%M:%S.%e%z %^%-7l%$ %v");
  }
  auto log = std::make_shared<spdlog::logger>("pawl", std::move(sink));
  log->set_level(spdlog::level::from_str(options.level));
  log->flush_on(spdlog::level::trace);
  return log;
}

void write(spdlog::logger& log, LogFormat format, const std::string& group, LogLine line) {
  if (!log.should_log(line.level))
    return;
  if (line.level >= spdlog::level::warn)
    line.text = texts::bounded(line.text, texts::kLongestLine);
  // As an argument, not as the format: a text may hold braces.
  log.log(line.level, "{}", format == LogFormat::kJson ? as_json(group, line) : as_text(line));
}

}  // namespace pawl::ops
