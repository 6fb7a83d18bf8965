#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "console/command.hpp"
#include "ledger/operator_commands.hpp"
#include "ledger/register_view.hpp"
#include "pawl/options.hpp"
#include "postgres/session.hpp"

namespace pawl::cli {

/// Which partitions a command is about.
struct PartitionArguments {
  std::string topic;
  std::optional<std::int32_t> partition;
  bool all = false;

  /// Throws BadCall unless exactly one of --partition and --all was given.
  void require_choice() const;
};

std::shared_ptr<PartitionArguments> add_partition_arguments(Command& command, bool with_all);

/// The consumer's row; throws FatalError when it has never run against this database.
ledger::KnownConsumer require_consumer(postgres::Session& session, const Options& options);

/// Throws BadCall with the handlers' topics when none of them means this one.
void require_handled(const Options& options, const std::string& topic);

/// The rows that `arguments` chose, by partition; throws FatalError naming those that are missing,
/// BadCall where nothing is stored of the topic and no handler has it.
std::vector<ledger::RegisterRow> choose_rows(postgres::Session& session, const Options& options,
                                             const ledger::KnownConsumer& consumer,
                                             const PartitionArguments& arguments);

/// Runs one change of the register; tries again while its row is locked (a commit in flight, a
/// stopped owner) for up to half a minute. Throws FatalError with what to do.
void change_register(const InvocationOptions& invocation, const TopicPartition& partition,
                     const std::function<void()>& change);

}  // namespace pawl::cli
