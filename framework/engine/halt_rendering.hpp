#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "ledger/halt.hpp"
#include "pawl/options.hpp"
#include "pawl/topic_partition.hpp"

namespace pawl::engine {

/// A command for the operator. command_text() renders it.
struct HaltCommand {
  std::string command;       ///< "partitions resume"
  std::string arguments;     ///< after those of the partition, quoted for a shell; may be empty
  std::string comment;       ///< when to use it: "after the fix"; may be empty
  bool of_partition = true;  ///< needs --topic and --partition
};

/// What a halt means for its reader. Sentences, without a period at the end of each text.
struct RenderedHalt {
  std::string what;    ///< the cause, without the location
  std::string effect;  ///< what pawl does now; empty: nothing that is not obvious
  std::string action;  ///< what to do, before the commands
  std::vector<HaltCommand> commands;
  /// The action is only to fix the cause and then to choose a command. So the comments of the
  /// commands state the same.
  bool generic = false;
};

/// How to fix what makes messages fail for this ledger::dead_reason: "Fix the cause". Without a
/// period.
[[nodiscard]] std::string_view fix_of(std::string_view reason);

/// Renders a stored halt with the reader's own program name and configuration. Pure.
///
///   const auto halt = rendered(row.halt, options, row.partition);
///   std::cout << halt.what << '\n';
///   for (const auto& command : halt.commands)
///     std::cout << "  " << command_text(options.invocation, command, row.partition) << '\n';
[[nodiscard]] RenderedHalt rendered(const ledger::Halt& halt, const Options& options,
                                    const TopicPartition& partition);

/// "pawl partitions resume --config pawl.toml --topic payments --partition 7", without the comment.
[[nodiscard]] std::string command_text(const InvocationOptions& invocation,
                                       const HaltCommand& command, const TopicPartition& partition);

/// All of it, for logs and alerts: "WHAT. EFFECT. ACTION:\n  COMMAND\n  COMMAND".
[[nodiscard]] std::string halt_text(const ledger::Halt& halt, const Options& options,
                                    const TopicPartition& partition);

using HaltField = std::pair<std::string, std::variant<std::int64_t, std::string>>;
/// Kind, code, and parameters, in the order in which fields of a log line have them: {"halt_kind",
/// "message"}, {"sqlstate", "22P02"}, {"attempts", 7}, ...
[[nodiscard]] std::vector<HaltField> halt_fields(const ledger::Halt& halt);

}  // namespace pawl::engine
