#include "config/invocation.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "config/in_force.hpp"
#include "config/shell_word.hpp"

namespace pawl {

std::string command_text(const InvocationOptions& invocation, std::string_view words) {
  auto text =
      fmt::format("{} {} --config {}", shell_word(invocation.program), words,
                  invocation.config_file.empty() ? "FILE" : shell_word(invocation.config_file));
  for (const auto& override_text : invocation.overrides)
    text += " --set " + shell_word(override_text);
  return text;
}

std::vector<std::string> overrides_to_paste(const std::vector<std::string>& overrides) {
  std::vector<std::string> kept;
  for (const auto& text : overrides) {
    const auto name = text.substr(0, text.find('='));
    const auto section = name.substr(0, name.find('.'));
    if (section != "kafka" && section != "postgres" && section != "redis")
      continue;
    const auto value = text.substr(std::min(text.size(), name.size() + 1));
    kept.push_back(name + "=" + config::shown_override(name, value));
  }
  return kept;
}

std::string partition_words(const TopicPartition& partition) {
  return fmt::format("--topic {} --partition {}", shell_word(partition.topic), partition.partition);
}

}  // namespace pawl
