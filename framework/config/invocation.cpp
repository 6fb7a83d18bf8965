#include "config/invocation.hpp"

#include <fmt/format.h>

#include "config/shell_word.hpp"

namespace pawl {

std::string command_text(const InvocationOptions& invocation, std::string_view words) {
  return fmt::format("{} {} --config {}", shell_word(invocation.program), words,
                     invocation.config_file.empty() ? "FILE" : shell_word(invocation.config_file));
}

std::string partition_words(const TopicPartition& partition) {
  return fmt::format("--topic {} --partition {}", shell_word(partition.topic), partition.partition);
}

}  // namespace pawl
