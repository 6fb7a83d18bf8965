#include "console/operator_change.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <chrono>

#include "config/invocation.hpp"
#include "console/bad_call.hpp"
#include "console/partition_view.hpp"
#include "handlers/topic_entries.hpp"
#include "pawl/errors.hpp"

namespace pawl::cli {
namespace {

constexpr std::chrono::seconds kPatience{30};

}  // namespace

void PartitionArguments::require_choice() const {
  if (partition.has_value() == all) {
    throw BadCall(all ? "--partition and --all exclude each other; give one of them"
                      : "say which partitions: --partition P, or --all of the topic");
  }
}

std::shared_ptr<PartitionArguments> add_partition_arguments(Command& command, bool with_all) {
  auto arguments = std::make_shared<PartitionArguments>();
  command.add_option("--topic", arguments->topic, "The topic")->required()->type_name("TOPIC");
  auto* partition = command.add_option("--partition", arguments->partition, "One partition of it")
                        ->not_negative()
                        ->type_name("P");
  if (with_all) {
    command.add_flag("--all", arguments->all, "All partitions of it");
  } else {
    partition->required();
  }
  return arguments;
}

ledger::KnownConsumer require_consumer(postgres::Session& session, const Options& options) {
  auto consumer = ledger::find_consumer(session, options.postgres.schema, options.kafka.cluster,
                                        options.kafka.group);
  if (!consumer) {
    throw FatalError(fmt::format(
        "this database knows no consumer {}/{} (kafka.cluster/kafka.group); correct them or "
        "postgres.url, or run it first. Positions are stated before the first run by: {} "
        "--topic TOPIC --all --to earliest",
        options.kafka.cluster, options.kafka.group,
        command_text(options.invocation, "offsets set")));
  }
  return *consumer;
}

void require_handled(const Options& options, const std::string& topic) {
  const auto entries = handlers::topic_entries(options);
  if (!entries.entry_of(topic).empty())
    return;
  auto topics = entries.names();
  for (const auto& pattern : entries.patterns())
    topics.push_back(pattern.text());
  throw BadCall(
      fmt::format("--topic {}: no handler of the configuration has it, and no offset of it is "
                  "stored; the handlers' topics are: {}",
                  topic, fmt::join(topics, ", ")));
}

std::vector<ledger::RegisterRow> choose_rows(postgres::Session& session, const Options& options,
                                             const ledger::KnownConsumer& consumer,
                                             const PartitionArguments& arguments) {
  if (arguments.topic.empty())
    throw BadCall("--topic \"\": name the topic (a variable of the shell may be empty)");
  auto rows = ledger::read_register(session, options.postgres.schema, consumer.id, arguments.topic);
  if (rows.empty())
    require_handled(options, arguments.topic);
  if (!arguments.all) {
    std::erase_if(rows,
                  [&](const auto& row) { return row.partition.partition != *arguments.partition; });
  }
  if (rows.empty()) {
    throw FatalError(fmt::format(
        "no offset is stored for {}{}: {} has not been assigned it yet; what is stored shows: {}; "
        "`offsets set` states a position",
        arguments.topic, arguments.all ? "" : fmt::format(" [{}]", *arguments.partition),
        options.kafka.group, command_text(options.invocation, "offsets show")));
  }
  return rows;
}

void change_register(const InvocationOptions& invocation, const TopicPartition& partition,
                     const std::function<void()>& change) {
  const auto give_up = std::chrono::steady_clock::now() + kPatience;
  const auto name = name_of(partition);
  const auto look = command_text(invocation, "offsets show");
  while (true) {
    try {
      change();
      return;
    } catch (const postgres::InDoubt& error) {
      throw FatalError(fmt::format(
          "{}: {}; whether it was stored is unknown: repeat it if this does not show it: {}", name,
          error.what(), look));
    } catch (const postgres::Error& error) {
      using postgres::FailureClass;
      if (error.failure() == FailureClass::kFenced ||
          error.failure() == FailureClass::kOutOfOrder) {
        throw FatalError(fmt::format(
            "{}: the partition has moved since it was read, nothing was changed ({}); repeat the "
            "command if it still applies: {}",
            name, error.what(), look));
      }
      if (error.failure() == FailureClass::kContention &&
          std::chrono::steady_clock::now() < give_up) {
        continue;
      }
      throw FatalError(fmt::format(
          "{}: {} (SQLSTATE {}), nothing was changed; {}", name, error.what(), error.sqlstate(),
          error.failure() == FailureClass::kContention
              ? "another session holds the row: see pg_stat_activity, and end the session of a "
                "stopped process with pg_terminate_backend"
          : error.is_of_set_up() ? "the role lacks a right that this names: " +
                                       command_text(invocation, "migrate grants") + " --role ROLE"
                                 : "correct that and repeat the command"));
    }
  }
}

}  // namespace pawl::cli
