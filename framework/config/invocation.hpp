#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "pawl/options.hpp"
#include "pawl/topic_partition.hpp"

namespace pawl {

/// "payments partitions resume --config '/etc/pawl/my file.toml'": a command of this program with
/// the configuration in use, ready to paste into a shell. Options and arguments may follow.
[[nodiscard]] std::string command_text(const InvocationOptions& invocation, std::string_view words);

/// The configuration alone: "--config payments.toml --set kafka.group=other"; without --config if
/// PAWL_CONFIG names the file.
[[nodiscard]] std::string config_words(const InvocationOptions& invocation);

/// Of texts as after --set those that a pasted command requires to mean the same consumer, keys,
/// leases, and handlers: all except how a process is monitored ([alerts], [log], [monitoring]).
/// What may be secret is ***, which is rejected or connects to nothing.
[[nodiscard]] std::vector<std::string> overrides_to_paste(
    const std::vector<std::string>& overrides);

/// "--topic orders --partition 3", for the same.
[[nodiscard]] std::string partition_words(const TopicPartition& partition);
/// "-t orders -p 3": the same for a terminal.
[[nodiscard]] std::string short_partition_words(const TopicPartition& partition);

}  // namespace pawl
