#include "config/invocation.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "config/in_force.hpp"
#include "config/overrides.hpp"
#include "config/shell_word.hpp"

namespace pawl {

std::string command_text(const InvocationOptions& invocation, std::string_view words) {
  auto text = fmt::format("{} {}", shell_word(invocation.program), words);
  if (const auto given = config_words(invocation); !given.empty())
    text += " " + given;
  return text;
}

std::string config_words(const InvocationOptions& invocation) {
  std::vector<std::string> words;
  if (!invocation.config_in_environment) {
    words.push_back("--config " + (invocation.config_file.empty()
                                       ? std::string("FILE")
                                       : shell_word(invocation.config_file)));
  }
  for (const auto& override_text : invocation.overrides)
    words.push_back("--set " + shell_word(override_text));
  return fmt::format("{}", fmt::join(words, " "));
}

std::vector<std::string> overrides_to_paste(const std::vector<std::string>& overrides) {
  std::vector<std::string> kept;
  for (const auto& text : overrides) {
    const auto parts = config::split_override(text);
    const auto section = parts.option.substr(0, parts.option.find('.'));
    if (section == "alerts" || section == "log" || section == "monitoring")
      continue;
    kept.push_back(parts.option + "=" + config::shown_override(parts.option, parts.value));
  }
  return kept;
}

std::string partition_words(const TopicPartition& partition) {
  return fmt::format("--topic {} --partition {}", shell_word(partition.topic), partition.partition);
}

std::string short_partition_words(const TopicPartition& partition) {
  return fmt::format("-t {} -p {}", shell_word(partition.topic), partition.partition);
}

}  // namespace pawl
