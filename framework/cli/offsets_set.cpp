// `offsets set` and `offsets reset`: an operator sets the next offset of partitions, while they
// run.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <iostream>
#include <set>

#include "cli/commands.hpp"
#include "config/invocation.hpp"
#include "console/bad_call.hpp"
#include "console/config_arguments.hpp"
#include "console/connections.hpp"
#include "console/counted.hpp"
#include "console/json.hpp"
#include "console/offset_target.hpp"
#include "console/operator_change.hpp"
#include "console/partition_view.hpp"
#include "console/table.hpp"
#include "console/terminal.hpp"
#include "ledger/consumers.hpp"
#include "ledger/offset_register.hpp"
#include "ledger/rows.hpp"
#include "pawl/errors.hpp"
#include "retention/key_horizon.hpp"

namespace pawl::cli {
namespace {

struct Arguments {
  std::string action;  ///< as the history names it
  std::string to;
  std::string to_timestamp;
  std::string reason;
  bool dry_run = false;
  bool force = false;
  bool json = false;
};

/// One partition's change.
struct Move {
  TopicPartition partition;
  std::optional<ledger::RegisterRow> row;  ///< nullopt: it has none yet
  std::optional<kafka::LogRange> range;    ///< nullopt: Kafka does not answer
  std::int64_t next = 0;                   ///< the next offset to process
  bool asked_for = true;     ///< false: only comes along with the topic's first contact
  bool other_topic = false;  ///< the row's position is of a topic that was deleted since
  [[nodiscard]] bool goes_back() const { return row && next < row->stored.next(); }
  /// How many offsets from `from` on and below `to` the log has.
  [[nodiscard]] std::int64_t in_log(std::int64_t from, std::int64_t to) const {
    if (!range)
      return to - from;
    return std::max<std::int64_t>(0, std::min(to, range->end) - std::max(from, range->start));
  }
};

struct Plan {
  std::optional<ledger::KnownConsumer> consumer;
  bool first_contact = false;  ///< the topic has no rows at all
  std::string kafka_cluster;   ///< empty: Kafka does not answer
  KeyHorizon horizon;
  std::vector<Move> moves;  ///< by partition
};

FatalError met_meanwhile(const InvocationOptions& invocation, const std::string& what) {
  return FatalError(fmt::format(
      "a consumer was assigned {} at the same time and stored its initial offset. Nothing was "
      "changed. Repeat the command if it still applies:\n"
      "  {}",
      what, command_text(invocation, "offsets show")));
}

class OffsetChange {
 public:
  OffsetChange(const Options& options, const PartitionArguments& partitions,
               const Arguments& arguments, OffsetTarget target)
      : options_(options),
        partitions_(partitions),
        arguments_(arguments),
        target_(std::move(target)),
        session_(connect_database(options)) {}

  int run() {
    read_register();
    ask_kafka();
    require_servable();
    require_recognisable();
    if (arguments_.json) {
      if (!arguments_.dry_run)
        apply();
      print_json();
      return kDone;
    }
    print();
    if (arguments_.dry_run) {
      std::cout << "Nothing was changed (--dry-run).\n";
      return kDone;
    }
    apply();
    std::cout << fmt::format(
        "Done. A running consumer continues there within {} s.\n",
        std::max<std::int64_t>(1, options_.postgres.poll_interval.count() / 1000));
    return kDone;
  }

 private:
  void read_register();
  void ask_kafka();
  void plan_from_kafka(const kafka::Client& client);
  void plan_without_kafka(const std::string& problem);
  void plan_first_contact(const kafka::Client& client,
                          const std::map<TopicPartition, kafka::LogRange>& ranges);
  [[nodiscard]] bool chosen(std::int32_t partition) const {
    return partitions_.all || partition == *partitions_.partition;
  }
  void require_committed(const kafka::Client& client,
                         const std::map<TopicPartition, kafka::LogRange>& asked) const;
  void require_servable() const;
  void require_recognisable() const;
  void print() const;
  void print_json() const;
  void apply();

  const Options& options_;
  const PartitionArguments& partitions_;
  const Arguments& arguments_;
  const OffsetTarget target_;
  std::unique_ptr<postgres::Session> session_;
  std::map<std::int32_t, ledger::RegisterRow> rows_;
  Plan plan_;
};

void OffsetChange::read_register() {
  const auto& schema = options_.postgres.schema;
  plan_.consumer =
      ledger::find_consumer(*session_, schema, options_.kafka.cluster, options_.kafka.group);
  bool known_topic = false;
  if (plan_.consumer) {
    for (auto& row :
         ledger::read_register(*session_, schema, plan_.consumer->id, partitions_.topic)) {
      rows_.emplace(row.partition.partition, std::move(row));
    }
    const ledger::OffsetRegister offsets(schema, plan_.consumer->id);
    known_topic = offsets.find_topic(*session_, partitions_.topic).has_value();
    plan_.horizon =
        KeyHorizon(ledger::pruned_to(*session_, schema, plan_.consumer->id, partitions_.topic));
  }
  plan_.first_contact = !known_topic;
  if (!known_topic)
    require_handled(options_, partitions_.topic);
}

void OffsetChange::ask_kafka() {
  try {
    const auto client = make_client(options_);
    plan_.kafka_cluster = client->cluster_id(kKafkaTimeout);
    if (plan_.consumer) {
      require_same_cluster(options_, plan_.consumer->kafka_cluster_id, plan_.kafka_cluster);
    }
    plan_from_kafka(*client);
  } catch (const kafka::KafkaError& error) {
    plan_without_kafka(error.what());
  }
}

void OffsetChange::plan_from_kafka(const kafka::Client& client) {
  const auto& topic = partitions_.topic;
  const auto described = client.describe({topic}, kKafkaTimeout);
  const auto found = described.find(topic);
  if (found == described.end()) {
    throw BadCall(fmt::format("topic {} does not exist in Kafka. Create it first", topic));
  }
  const auto count = found->second.partitions;
  if (partitions_.partition && *partitions_.partition >= count) {
    throw BadCall(
        fmt::format("invalid value for --partition: \"{}\". Topic {} has partitions 0 to {}",
                    *partitions_.partition, topic, count - 1));
  }
  std::vector<TopicPartition> all;
  for (std::int32_t p = 0; p < count; ++p)
    all.push_back({topic, p});
  const auto ranges = client.log_ranges(all, kKafkaTimeout);
  if (ranges.size() != all.size()) {
    throw kafka::KafkaError(kafka::ErrorKind::kPassing,
                            fmt::format("a partition of {} has no leader", topic));
  }
  std::map<TopicPartition, kafka::LogRange> asked;
  for (const auto& [partition, range] : ranges) {
    if (chosen(partition.partition))
      asked.emplace(partition, range);
  }
  require_committed(client, asked);
  for (const auto& [partition, next] : resolve(client, target_, asked)) {
    Move move{partition, std::nullopt, ranges.at(partition), next};
    const auto row = rows_.find(partition.partition);
    if (row != rows_.end()) {
      move.row = row->second;
      const auto& id = found->second.id;
      move.other_topic = !move.row->topic_id.empty() && !id.empty() && move.row->topic_id != id;
    }
    plan_.moves.push_back(std::move(move));
  }
  std::vector<TopicPartition> back;
  for (const auto& move : plan_.moves) {
    // With --force nobody looks at it, and it must not fail for what Kafka cannot tell now.
    if (move.goes_back() && !arguments_.force)
      back.push_back(move.partition);
  }
  plan_.horizon.ask(client, back);
  if (plan_.first_contact)
    plan_first_contact(client, ranges);
}

void OffsetChange::plan_first_contact(const kafka::Client& client,
                                      const std::map<TopicPartition, kafka::LogRange>& ranges) {
  std::map<TopicPartition, kafka::LogRange> others;
  for (const auto& [partition, range] : ranges) {
    if (!chosen(partition.partition))
      others.emplace(partition, range);
  }
  if (others.empty())
    return;
  const auto start = OffsetTarget::start_of(options_.kafka);
  if (!start) {
    throw BadCall(fmt::format(
        "no offset of {} is stored yet, so each of its partitions ({}) requires an initial offset, "
        "but kafka.start = \"halt\" provides none. Use --all, and change single partitions "
        "afterwards, or --set kafka.start=earliest",
        partitions_.topic, ranges.size()));
  }
  for (const auto& [partition, next] : resolve(client, *start, others)) {
    plan_.moves.push_back({partition, std::nullopt, ranges.at(partition), next, false});
  }
  std::sort(plan_.moves.begin(), plan_.moves.end(),
            [](const Move& a, const Move& b) { return a.partition < b.partition; });
}

void OffsetChange::plan_without_kafka(const std::string& problem) {
  if (target_.kind != OffsetTarget::Kind::kOffset || !arguments_.force) {
    throw FatalError(fmt::format(
        "Kafka is unreachable, so the offset cannot be compared with the log: {}. Repeat "
        "the command once Kafka is reachable, or use an offset with --force",
        problem));
  }
  plan_.moves.clear();  // Kafka may have gone while it was asked
  for (const auto& [partition, row] : rows_) {
    if (chosen(partition))
      plan_.moves.push_back({row.partition, row, std::nullopt, target_.number});
  }
  if (plan_.moves.empty()) {
    throw FatalError(fmt::format(
        "Kafka is unreachable ({}), and no offset is stored for these partitions. Repeat "
        "the command once Kafka is reachable",
        problem));
  }
}

/// With kafka.start = "committed", a partition without a committed offset starts at the log's
/// start; an operator who writes --to committed expects that there is one.
void OffsetChange::require_committed(const kafka::Client& client,
                                     const std::map<TopicPartition, kafka::LogRange>& asked) const {
  if (arguments_.to != "committed")
    return;
  std::vector<TopicPartition> partitions;
  for (const auto& [partition, range] : asked)
    partitions.push_back(partition);
  const auto committed = client.committed(partitions, kKafkaTimeout);
  std::vector<std::int32_t> without;
  for (const auto& partition : partitions) {
    const auto found = committed.find(partition);
    if (found == committed.end() || found->second.next < 0)
      without.push_back(partition.partition);
  }
  if (without.empty())
    return;
  throw BadCall(fmt::format(
      "--to committed: group {} has no committed offset in Kafka for {}[{}]. Nothing was changed. "
      "Check kafka.group, or set the offset of each partition:\n"
      "  {} {} --to earliest",
      options_.kafka.group, partitions_.topic, fmt::join(without, ", "),
      command_text(options_.invocation, arguments_.action),
      partition_words({partitions_.topic, without.front()})));
}

void OffsetChange::require_servable() const {
  if (arguments_.force)
    return;
  for (const auto& move : plan_.moves) {
    if (!move.range || (move.next >= move.range->start && move.next <= move.range->end))
      continue;
    throw BadCall(fmt::format(
        "{} cannot continue at offset {}, because the log has offsets {} to {} (end): the "
        "partition would halt. Use an offset of this range, or --force",
        name_of(move.partition), move.next, move.range->start, move.range->end));
  }
}

void OffsetChange::require_recognisable() const {
  for (const auto& move : plan_.moves) {
    const auto refusal = plan_.horizon.refusal(move.partition, move.next);
    if (refusal && !arguments_.force)
      throw BadCall(*refusal);
  }
}

void OffsetChange::print() const {
  using Align = Table::Align;
  Table table({{"TOPIC"},
               {"PARTITION", Align::kRight},
               {"OFFSET", Align::kRight},
               {"NEW OFFSET", Align::kRight},
               {"LOG START", Align::kRight},
               {"END", Align::kRight},
               {"EFFECT"}});
  for (const auto& move : plan_.moves) {
    std::string what;
    if (!move.asked_for) {
      what = "first assignment, by kafka.start";
    } else if (!move.row) {
      what = "first assignment";
    } else if (move.other_topic) {
      what = fmt::format("{} of the new topic delivered, {} SKIPPED",
                         counted(move.in_log(move.next, move.range->end), "offset", "offsets"),
                         grouped(move.in_log(move.range->start, move.next)));
    } else if (const auto now = move.row->stored.next(); move.next < now) {
      what = counted(move.in_log(move.next, now), "offset", "offsets") + " delivered again";
    } else if (move.next > now) {
      what = counted(move.in_log(now, move.next), "offset", "offsets") + " SKIPPED";
    } else {
      what = "unchanged";
    }
    if (move.row && move.row->state == ledger::PartitionState::kHalted)
      what += ", the halt ends";
    if (move.row && move.row->state == ledger::PartitionState::kPaused)
      what += ", stays paused";
    table.add({move.partition.topic, std::to_string(move.partition.partition),
               move.row ? std::to_string(move.row->stored.next()) : "-", std::to_string(move.next),
               move.range ? std::to_string(move.range->start) : "?",
               move.range ? std::to_string(move.range->end) : "?", what});
  }
  std::cout << table.text(terminal_of(STDOUT_FILENO).columns);
  const bool again = std::any_of(plan_.moves.begin(), plan_.moves.end(), [](const Move& move) {
    return move.goes_back() || move.other_topic;
  });
  if (again) {
    std::cout << "Delivered messages whose key is stored are duplicates and have no effect.\n";
  }
  // Without --force it is rejected.
  if (again && arguments_.force && plan_.horizon.pruned_to()) {
    std::cout << fmt::format(
        "Keys from before {} are removed: older messages, if any, are NOT recognized and are "
        "applied "
        "again.\n",
        ledger::to_string(*plan_.horizon.pruned_to()));
  }
}

void OffsetChange::print_json() const {
  auto partitions = Json::array();
  for (const auto& move : plan_.moves) {
    partitions.push_back(
        {{"topic", move.partition.topic},
         {"partition", move.partition.partition},
         {"previous_offset", move.row ? Json(move.row->stored.next()) : Json(nullptr)},
         {"offset", move.next},
         {"requested", move.asked_for},
         {"previous_state", move.row ? Json(ledger::to_string(move.row->state)) : Json(nullptr)},
         {"log_start", move.range ? Json(move.range->start) : Json(nullptr)},
         {"end", move.range ? Json(move.range->end) : Json(nullptr)}});
  }
  std::cout << indented({{"dry_run", arguments_.dry_run}, {"partitions", std::move(partitions)}})
            << '\n';
}

void OffsetChange::apply() {
  const auto& schema = options_.postgres.schema;
  auto id = plan_.consumer ? plan_.consumer->id : ledger::ConsumerId{};
  if (!plan_.consumer) {
    id = ledger::register_consumer(*session_, schema, options_.kafka.cluster, options_.kafka.group,
                                   plan_.kafka_cluster)
             .consumer;
  }
  const ledger::OffsetRegister offsets(schema, id);
  const auto reason =
      arguments_.reason.empty() ? fmt::format("to {}", target_.text) : arguments_.reason;
  if (plan_.first_contact) {
    // All partitions at once, and once: a consumer that waits for it begins right away.
    ledger::FirstContact contact{partitions_.topic, arguments_.action, {}, reason};
    for (const auto& move : plan_.moves)
      contact.starts.push_back(ledger::Position::before(move.next));
    change_register(options_.invocation, {partitions_.topic, 0}, [&] {
      if (!offsets.first_contact(*session_, contact).ours)
        throw met_meanwhile(options_.invocation, partitions_.topic);
    });
    return;
  }
  const ledger::OperatorCommands commands(schema, id);
  // One transaction a partition: rows of several partitions are never locked at once.
  for (const auto& move : plan_.moves) {
    if (!move.asked_for)
      continue;
    ledger::OperatorChange change;
    change.partition = move.partition;
    change.position = ledger::Position::before(move.next);
    if (!move.row || move.row->state != ledger::PartitionState::kPaused) {
      change.state = ledger::PartitionState::kRunning;
    }
    change.needs_keys = move.goes_back() && !arguments_.force;
    change.pruned_to = plan_.horizon.pruned_to();
    change.action = arguments_.action;
    change.reason = reason;
    change_register(options_.invocation, move.partition, [&] {
      if (move.row) {
        commands.change(*session_, change);
      } else if (!commands.begin_partition(*session_, change)) {
        throw met_meanwhile(options_.invocation, name_of(move.partition));
      }
    });
  }
}

int change_offsets(const Options& options, const PartitionArguments& partitions,
                   const Arguments& arguments, OffsetTarget target) {
  return OffsetChange(options, partitions, arguments, std::move(target)).run();
}

void add_common(Command& command, Arguments& arguments) {
  command.add_option("--because", arguments.reason, "Reason, stored in the history")->reason();
  command.add_flag("--dry-run", arguments.dry_run, "Show the effect without changing anything");
  command.add_flag("--force", arguments.force,
                   "Accept an offset outside of the log, or older than the stored keys");
  command.add_json_flag(arguments.json);
}

}  // namespace

void add_offsets(Command& parser, Commands& commands) {
  auto* offsets = parser.add_subcommand("offsets", "Show or change stored offsets");
  add_offsets_show(*offsets, commands);
  add_offsets_set(*offsets, commands);
  add_offsets_reset(*offsets, commands);
}

void add_offsets_set(Command& offsets, Commands& commands) {
  auto* command =
      offsets.add_subcommand("set", "Set the next offset of partitions; no restart is required");
  const auto config = add_config_arguments(*command);
  const auto partitions = add_partition_arguments(*command, true);
  const auto arguments = std::make_shared<Arguments>();
  arguments->action = "offsets set";
  auto* to = command->add_option("--to", arguments->to,
                                 "Next offset to process, or earliest, latest, committed");
  to->type_name("OFFSET");
  command
      ->add_option("--to-timestamp", arguments->to_timestamp,
                   "First record at or after this time: 2026-01-31T00:00:00Z")
      ->excludes(to)
      ->type_name("TIMESTAMP");
  add_common(*command, *arguments);
  commands.set_action(command, [config, partitions, arguments] {
    partitions->require_choice();
    if (arguments->to.empty() && arguments->to_timestamp.empty()) {
      throw BadCall(
          "an offset is required: --to OFFSET, earliest, latest, or committed, or --to-timestamp "
          "TIMESTAMP");
    }
    auto target = arguments->to.empty() ? OffsetTarget::parse_time(arguments->to_timestamp)
                                        : OffsetTarget::parse(arguments->to);
    return change_offsets(config->load(), *partitions, *arguments, std::move(target));
  });
}

void add_offsets_reset(Command& offsets, Commands& commands) {
  auto* command =
      offsets.add_subcommand("reset", "Set a topic to its initial offset; no restart is required");
  const auto config = add_config_arguments(*command);
  const auto partitions = add_partition_arguments(*command, true);
  const auto arguments = std::make_shared<Arguments>();
  arguments->action = "offsets reset";
  auto* to = command->add_option("--to", arguments->to,
                                 "committed, earliest, or latest (default: kafka.start)");
  to->one_of({"committed", "earliest", "latest"})->type_name("START");
  command
      ->add_option("--to-timestamp", arguments->to_timestamp,
                   "First record at or after this time: 2026-01-31T00:00:00Z")
      ->excludes(to)
      ->type_name("TIMESTAMP");
  add_common(*command, *arguments);
  commands.set_action(command, [config, partitions, arguments] {
    if (!partitions->partition)
      partitions->all = true;
    partitions->require_choice();
    const auto options = config->load();
    auto target = OffsetTarget::start_of(options.kafka);
    if (!arguments->to.empty())
      target = OffsetTarget::parse(arguments->to);
    if (!arguments->to_timestamp.empty())
      target = OffsetTarget::parse_time(arguments->to_timestamp);
    if (!target) {
      throw BadCall(
          "kafka.start = \"halt\" is not an offset. Use --to committed, earliest, or latest, or "
          "--to-timestamp TIMESTAMP");
    }
    return change_offsets(options, *partitions, *arguments, *target);
  });
}

}  // namespace pawl::cli
