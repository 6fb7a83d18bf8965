#pragma once

#include <string>
#include <string_view>

#include "pawl/options.hpp"
#include "pawl/topic_partition.hpp"

namespace pawl {

/// "payments partitions resume --config '/etc/pawl/my file.toml'": a command of this program with
/// the configuration in use, for people to paste into a shell. Options and arguments may follow.
[[nodiscard]] std::string command_text(const InvocationOptions& invocation, std::string_view words);

/// "--topic orders --partition 3", for the same.
[[nodiscard]] std::string partition_words(const TopicPartition& partition);

}  // namespace pawl
