#include "ops/log_line.hpp"

#include <fmt/format.h>
#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "ops/alerts_message.hpp"
#include "ops/event_table.hpp"
#include "text/bounded.hpp"

namespace pawl::ops {
namespace {

/// "info " and "info": spdlog's own names of the levels are others.
class LevelFlag final : public spdlog::custom_flag_formatter {
 public:
  explicit LevelFlag(bool aligned) : aligned_(aligned) {}

  void format(const spdlog::details::log_msg& message, const std::tm& /*time*/,
              spdlog::memory_buf_t& to) override {
    const auto text = fmt::format("{:<{}}", level_name(message.level), aligned_ ? 5 : 0);
    to.append(text.data(), text.data() + text.size());
  }
  [[nodiscard]] std::unique_ptr<custom_flag_formatter> clone() const override {
    return std::make_unique<LevelFlag>(aligned_);
  }

 private:
  bool aligned_;
};

std::unique_ptr<spdlog::formatter> formatter_of(LogFormat format) {
  const bool json = format == LogFormat::kJson;
  auto formatter = std::make_unique<spdlog::pattern_formatter>(
      json ? spdlog::pattern_time_type::utc : spdlog::pattern_time_type::local);
  formatter->add_flag<LevelFlag>('*', !json);
  formatter->set_pattern(json ? R"({"ts":"%Y-%m-%dT%H:%M:%S.%eZ","level":"%*",%v)"
                              : "%Y-%m-%dT%H:%M:%S.%e%z %^%*%$ %v");
  return formatter;
}

/// Whether NO_COLOR is set and not empty (https://no-color.org).
bool no_color() {
  const auto* value = std::getenv("NO_COLOR");
  return value != nullptr && *value != '\0';
}

std::shared_ptr<spdlog::logger> logger_of(const LogOptions& options) {
  std::shared_ptr<spdlog::sinks::sink> sink;
  if (options.format == LogFormat::kJson || no_color()) {
    sink = std::make_shared<spdlog::sinks::stderr_sink_mt>();
  } else {
    // Colors only on a terminal.
    sink = std::make_shared<spdlog::sinks::stderr_color_sink_mt>();
  }
  sink->set_formatter(formatter_of(options.format));
  auto log = std::make_shared<spdlog::logger>("pawl", std::move(sink));
  log->set_level(spdlog::level::from_str(options.level));
  log->flush_on(spdlog::level::trace);
  return log;
}

bool is_control(char c) {
  return static_cast<unsigned char>(c) < 0x20 || c == 0x7F;
}

/// A line break, with the blanks after it, is a blank, or a break and an indentation.
std::string one_line(std::string_view text, bool keeps_breaks) {
  std::string line;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '\n') {
      line += is_control(text[i]) ? ' ' : text[i];
      continue;
    }
    line += keeps_breaks ? "\n  " : " ";
    while (i + 1 < text.size() && (text[i + 1] == ' ' || text[i + 1] == '\n'))
      ++i;
  }
  return line;
}

std::string word_of(const LogValue& value) {
  if (const auto* flag = std::get_if<bool>(&value))
    return *flag ? "true" : "false";
  if (const auto* number = std::get_if<std::int64_t>(&value))
    return std::to_string(*number);
  auto text = one_line(std::get<std::string>(value), false);
  if (!text.empty() && text.find_first_of(" \"=") == std::string::npos)
    return text;
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\')
      quoted += '\\';
    quoted += c;
  }
  return quoted + '"';
}

}  // namespace

std::string text_of(const LogLine& line, bool terminal) {
  std::string text(line.event);
  for (const auto& [name, value] : line.fields)
    text += fmt::format(" {}={}", name, word_of(value));
  if (!line.text.empty())
    text += ": " + one_line(line.text, terminal);
  return text;
}

std::string json_of(const LogLine& line, const std::string& group, const std::string& instance) {
  nlohmann::ordered_json object;
  object["event"] = line.event;
  if (!line.text.empty())
    object["msg"] = one_line(line.text, false);
  if (!group.empty())
    object["group"] = group;
  object["instance"] = instance;
  for (const auto& [name, value] : line.fields)
    std::visit([&](const auto& known) { object[std::string(name)] = known; }, value);
  return object.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace).substr(1);
}

LogWriter::LogWriter(const Options& options)
    : format_(options.log.format),
      group_(options.kafka.group),
      instance_(alert_sender(options).instance),
      terminal_(::isatty(STDERR_FILENO) == 1),
      log_(logger_of(options.log)) {}

bool LogWriter::writes(spdlog::level::level_enum level) const {
  return level != spdlog::level::off && log_->should_log(level);
}

void LogWriter::write(LogLine line) const {
  if (!writes(line.level))
    return;
  if (line.level >= spdlog::level::warn)
    line.text = texts::bounded(line.text, texts::kLongestLine);
  // As an argument, not as the format: a text may contain braces.
  log_->log(
      line.level, "{}",
      format_ == LogFormat::kJson ? json_of(line, group_, instance_) : text_of(line, terminal_));
}

}  // namespace pawl::ops
