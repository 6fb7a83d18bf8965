#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "pawl/options.hpp"
#include "pawl/topic_partition.hpp"

namespace pawl {

/// "payments partitions resume --config '/etc/pawl/my file.toml'": a command of this program with
/// the configuration in use, for people to paste into a shell. Options and arguments may follow.
[[nodiscard]] std::string command_text(const InvocationOptions& invocation, std::string_view words);

/// Of texts as after --set those that a pasted command needs, so that it means the same consumer,
/// keys, leases and handlers: all but how a process is watched ([alerts], [log], [monitoring]),
/// with *** for what may be secret (it is refused then, or connects to nobody).
[[nodiscard]] std::vector<std::string> overrides_to_paste(
    const std::vector<std::string>& overrides);

/// "--topic orders --partition 3", for the same.
[[nodiscard]] std::string partition_words(const TopicPartition& partition);
/// "-t orders -p 3": the same for a terminal.
[[nodiscard]] std::string short_partition_words(const TopicPartition& partition);

}  // namespace pawl
