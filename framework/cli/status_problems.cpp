// Which problems `status` shows, grouped by cause, and what to do about each.
#include "cli/status_problems.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <string_view>
#include <tuple>

#include "config/document.hpp"
#include "config/invocation.hpp"
#include "config/redact.hpp"
#include "console/counted.hpp"
#include "console/partition_view.hpp"
#include "console/topics_seen.hpp"
#include "engine/assignment_halts.hpp"
#include "engine/conditions.hpp"
#include "engine/topic_directory.hpp"
#include "ledger/blocking_sessions.hpp"
#include "ledger/instant.hpp"
#include "ops/catching_up.hpp"
#include "text/located.hpp"

namespace pawl::cli {
namespace {

using ledger::PartitionState;

HaltView view_of(const Status& status, const TopicPartition& partition, std::string handler,
                 const engine::RenderedHalt& halt) {
  HaltView view{std::move(handler), halt.what, {}, {}};
  if (!halt.generic) {
    view.advice = halt.action + ".";
    if (halt.commands.empty() && !halt.effect.empty())
      view.advice = fmt::format("{}. {}", halt.effect, view.advice);
  }
  for (const auto& one : halt.commands) {
    auto text = command_text(status.invocation, one.command);
    if (one.of_partition)
      text += " " + short_partition_words(partition);
    if (!one.arguments.empty())
      text += " " + one.arguments;
    view.steps.push_back({std::move(text), one.comment});
  }
  return view;
}

class Problems {
 public:
  explicit Problems(const Status& status)
      : status_(status),
        now_(ledger::to_string(ledger::Instant(std::chrono::milliseconds(status.now_ms)))) {
    for (const auto& partition : status.partitions)
      urgent_.push_back(&partition);
    std::ranges::stable_sort(urgent_, [](const auto* one, const auto* other) {
      return std::tuple(one->concern, one->lag().value_or(0)) >
             std::tuple(other->concern, other->lag().value_or(0));
    });
  }

  std::vector<Problem> all() {
    add_servers();
    add_topics();
    add_stopped(PartitionState::kHalted);
    add_pending_halts();
    add_conditions();
    add_unowned();
    add_unstored();
    add_stalled();
    add_retrying();
    add_probation();
    add_stopped(PartitionState::kPaused);
    add_ahead();
    add_differing();
    return std::move(problems_);
  }

 private:
  Problem& add(std::string heading, std::vector<std::string> title) {
    return problems_.emplace_back(Problem{std::move(heading), std::move(title), {}, {}});
  }

  [[nodiscard]] std::string command(std::string_view words) const {
    return command_text(status_.invocation, words);
  }
  [[nodiscard]] std::string command(std::string_view words, const TopicPartition& partition) const {
    return fmt::format("{} {}", command(words), short_partition_words(partition));
  }

  [[nodiscard]] std::string since_text(const std::string& time) const {
    return "since " + time_near(time, now_);
  }

  void add_servers() {
    if (!status_.postgres_problem.empty()) {
      std::string_view problem = status_.postgres_problem;
      if (const auto known = fmt::format("cannot connect to {}: ", status_.database);
          problem.starts_with(known))
        problem.remove_prefix(known.size());
      auto& shown = add("POSTGRESQL", {status_.database});
      shown.texts = {std::string(problem),
                     "This is the result of this command's own connection. Sessions that processes "
                     "have open may continue: see /ready and the log of each process."};
    }
    if (!status_.kafka_problem.empty()) {
      auto& shown = add("KAFKA", {status_.bootstrap_servers});
      shown.texts = {status_.kafka_problem, "END and LAG are unknown."};
    }
  }

  void add_topics() {
    for (const auto& topic : status_.missing_topics)
      add("TOPICS", {topic}).texts = {missing_topic_text(topic)};
    for (const auto& [topic, why] : status_.refused_topics)
      add("TOPICS", {topic}).texts = {engine::topic_refused_text(topic, why) + "."};
    for (const auto& [topic, why] : status_.ambiguous_topics)
      add("TOPICS", {topic}).texts = {why + "."};
    for (const auto& topic : status_.gone_topics)
      add("TOPICS", {topic}).texts = {gone_topic_text(topic)};
  }

  /// Halted or paused partitions with one cause.
  struct Stopped {
    HaltView view;
    std::string kind;
    std::vector<const StatusPartition*> partitions;
  };

  void add_stopped(PartitionState state) {
    std::vector<Stopped> groups;
    for (const auto* partition : urgent_) {
      if (!partition->row || partition->row->state != state)
        continue;
      auto view = halt_view(status_, *partition->row);
      const auto& kind = partition->row->halt.kind;
      const auto known = std::ranges::find_if(groups, [&](const Stopped& group) {
        return group.kind == kind && group.view.handler == view.handler &&
               group.view.cause == view.cause;
      });
      if (known != groups.end()) {
        known->partitions.push_back(partition);
      } else {
        groups.push_back({std::move(view), kind, {partition}});
      }
    }
    for (auto& group : groups)
      add_stopped(state, group);
  }

  void add_stopped(PartitionState state, Stopped& group) {
    const bool halted = state == PartitionState::kHalted;
    const auto& first = *group.partitions.front()->row;
    std::vector<TopicPartition> names;
    auto since = first.state_since;
    std::optional<std::int64_t> lag = 0;
    for (const auto* partition : group.partitions) {
      names.push_back(partition->partition);
      since = std::min(since, partition->row->state_since);
      const auto own = partition->lag();
      lag = lag && own ? std::optional(*lag + *own) : std::nullopt;
    }
    const bool alone = names.size() == 1;
    auto& shown =
        add(halted ? "HALTED" : "PAUSED",
            {alone && first.halt.message_offset ? name_of(names.front(), *first.halt.message_offset)
                                                : names_of(names)});
    if (!group.view.handler.empty())
      shown.title.push_back(group.view.handler);
    shown.title.push_back(since_text(since));
    shown.title.push_back(fmt::format("lag {}", lag ? grouped(*lag) : "?"));
    if (halted && group.kind != ledger::halt_kind::kMessage && !group.kind.empty()) {
      auto kind = group.kind;
      std::ranges::replace(kind, '-', ' ');
      shown.title.push_back(kind);
    }
    shown.texts = {group.view.cause.empty() ? "No reason was given." : group.view.cause};
    if (!group.view.advice.empty())
      shown.texts.push_back(std::move(group.view.advice));
    shown.steps = std::move(group.view.steps);
    if (!alone && !shown.steps.empty())
      shown.texts.push_back(text_about_others(names.front()));
  }

  void add_pending_halts() {
    engine::AssignmentHalts halts;
    for (const auto& [partition, pending] : status_.pending_halts)
      halts.emplace(partition, pending.halt);
    for (const auto& partitions : engine::by_cause(halts)) {
      const auto& first = partitions.front();
      auto view = view_of(status_, first, "", status_.pending_halts.at(first).text);
      const bool alone = partitions.size() == 1;
      auto& shown = add("WILL HALT", {names_of(partitions)});
      shown.texts = {
          alone ? std::move(view.cause) : fmt::format("{}: {}", name_of(first), view.cause),
          fmt::format("{} will halt, at the latest when a process acquires {}.",
                      alone ? "The partition" : "The partitions", alone ? "it" : "them")};
      if (!view.advice.empty())
        shown.texts.push_back(std::move(view.advice));
      shown.steps = std::move(view.steps);
      if (!alone && !shown.steps.empty())
        shown.texts.push_back(text_about_others(first));
    }
  }

  static std::string text_about_others(const TopicPartition& first) {
    return fmt::format("The commands are for {}; each of the others needs the same.",
                       name_of(first));
  }

  void add_conditions() {
    std::map<std::int32_t, std::vector<ledger::SharedCondition>> by_session;
    for (const auto& [condition, owners] : ledger::shared_conditions(status_.conditions)) {
      if (condition.kind == Condition::Kind::kKafkaUnreachable) {
        add_kafka_wait(condition, owners);
        continue;
      }
      if (condition.kind == Condition::Kind::kPartitionBlocked) {
        by_session[condition.blocking_pid].push_back({condition, owners});
        continue;
      }
      auto& shown = add("UNREACHABLE", {condition.subject});
      shown.texts = {fmt::format("{} {}.", condition.subject, engine::text_of(condition)),
                     fmt::format("Reported by {}.", fmt::join(owners, ", "))};
    }
    for (const auto& [pid, blocked] : by_session) {
      if (pid != 0) {
        add_blocked(pid, blocked);
        continue;
      }
      // Sessions that are not known may be different ones.
      for (const auto& one : blocked)
        add_blocked(pid, {one});
    }
  }

  /// The partitions that wait for one session of PostgreSQL; pid 0: for an unknown one.
  void add_blocked(std::int32_t pid, const std::vector<ledger::SharedCondition>& blocked) {
    std::vector<TopicPartition> partitions;
    std::set<std::string> processes;
    // The earliest comes first.
    auto whole = blocked.front().condition;
    whole.messages = 0;
    for (const auto& [condition, owners] : blocked) {
      partitions.push_back({condition.topic, condition.partition});
      processes.insert(owners.begin(), owners.end());
      whole.messages += condition.messages;
    }
    auto& shown =
        add("BLOCKED", {names_of(partitions), since_text(ledger::to_string(whole.since))});
    shown.texts = {fmt::format("{} {}.", whole.subject, engine::text_of(whole)),
                   fmt::format("Reported by {}.", fmt::join(processes, ", "))};
    if (pid == 0)
      return;
    shown.texts.emplace_back(
        "If the session need not finish its work, terminate it. Its transaction is rolled back.");
    shown.texts.push_back(fmt::format("{}.", ledger::kTerminationRoles));
    shown.steps = {{config::psql_text(status_.database, ledger::termination_sql(pid))}};
  }

  /// Another process would wait as well.
  void add_kafka_wait(const Condition& condition, const std::vector<std::string>& owners) {
    auto& shown = add("WAITING FOR KAFKA", {counted(std::ssize(owners), "process", "processes"),
                                            since_text(ledger::to_string(condition.since))});
    shown.texts = {
        fmt::format("{} {} for Kafka since {}: {}.",
                    counted(std::ssize(owners), "process", "processes"),
                    owners.size() == 1 ? "waits" : "wait", ledger::to_string(condition.since),
                    condition.cause),
        fmt::format("Running: {}. Do not start another process: it would wait as well.",
                    fmt::join(owners, ", ")),
        fmt::format("Check the brokers {}, and the network to them. The processes continue "
                    "automatically when Kafka responds.",
                    condition.subject)};
    shown.steps = {{command("check")}};
  }

  /// Partitions that a process has owned before. A process without a session was killed, or
  /// reconnects: its last report is not enough to rely on it.
  void add_unowned() {
    std::vector<TopicPartition> unowned;
    std::set<std::string> last_owners;
    for (const auto& partition : status_.partitions) {
      if (!partition.row || partition.row->owned())
        continue;
      unowned.push_back(partition.partition);
      if (partition.row->session_gone)
        last_owners.insert(partition.row->owner);
    }
    if (unowned.empty())
      return;
    const auto waiting = kafka_waits(status_);
    std::vector<std::string> running;
    std::vector<std::string> silent;
    for (const auto& process : status_.processes) {
      if (std::ranges::find(waiting, process) == waiting.end())
        (last_owners.contains(process) ? silent : running).push_back(process);
    }
    const auto count = std::ssize(unowned);
    auto& shown = add("UNOWNED", {counted(count, "partition", "partitions"), names_of(unowned)});
    shown.texts = {fmt::format("No message is processed there until a process takes {}.",
                               count == 1 ? "the partition" : "the partitions")};
    if (!last_owners.empty())
      shown.texts.push_back(fmt::format("Last owner: {}.", fmt::join(last_owners, ", ")));
    if (!running.empty()) {
      shown.texts.push_back(fmt::format(
          "Running: {}. No action needed: Kafka assigns the partitions. After a process exits "
          "without leaving the group, Kafka keeps its partitions for {}.",
          fmt::join(running, ", "), status_.place_kept));
      return;
    }
    if (!waiting.empty()) {
      shown.texts.push_back(fmt::format(
          "Running: {}. {} the partitions when Kafka responds.", fmt::join(waiting, ", "),
          waiting.size() == 1 ? "The process waits for Kafka and takes"
                              : "The processes wait for Kafka and take"));
      return;
    }
    if (!silent.empty()) {
      shown.texts.push_back(fmt::format(
          "{} reported within the last {} s, and has no session now: it was killed, or reconnects.",
          fmt::join(silent, ", "), ledger::kLiveProcess.count()));
    }
    shown.steps = {{command("run"), silent.empty() ? "" : "if the process does not run any more"}};
  }

  void add_unstored() {
    const auto whole = unstored_topics(status_);
    std::map<std::string, UnstoredPartitions> unstored;
    for (const auto& partition : status_.partitions) {
      if (!partition.row && status_.postgres_problem.empty())
        unstored[partition.partition.topic].partitions.push_back(partition.partition.partition);
    }
    for (auto& [topic, one] : unstored) {
      one.topic = topic;
      one.all = std::ranges::find(whole, topic) != whole.end();
      auto& shown = add("NOT STARTED", {unstored_name(one)});
      shown.texts = {unstored_text(one)};
      shown.steps = {{command("check")}};
    }
  }

  void add_stalled() {
    for (const auto* partition : urgent_) {
      if (partition->concern != Concern::kStalled)
        continue;
      const auto& row = *partition->row;
      auto& shown = add("STALLED", {name_of(row.partition, row.stored.next()),
                                    fmt::format("lag {}", known_text(partition->lag()))});
      shown.texts = {
          fmt::format("No message was processed for {}, although messages wait. See the "
                      "log of {}.",
                      ops::span_text(row.since_update_ms / 1000), row.owner)};
    }
  }

  void add_retrying() {
    for (const auto* partition : urgent_) {
      if (!partition->row || !partition->row->any_retrying())
        continue;
      const auto& row = *partition->row;
      const auto offset = row.retried_offset();
      const auto attempts = row.failed_attempts();
      auto& shown = add("RETRYING", {name_of(row.partition, offset.value_or(-1)),
                                     counted(attempts, "failed attempt", "failed attempts"),
                                     fmt::format("lag {}", known_text(partition->lag()))});
      auto peek = command("partitions peek", row.partition);
      if (row.retrying()) {
        shown.texts.emplace_back("Later messages of the partition wait.");
      } else {
        shown.texts.emplace_back("Messages that need not wait for this one continue.");
        if (row.ahead.trying > 1) {
          shown.texts.back() +=
              fmt::format(" {} retried as well.",
                          counted(row.ahead.trying - 1, "other message is", "other messages are"));
        }
        peek += fmt::format(" --offset {}", offset.value_or(-1));
      }
      shown.texts.push_back(fmt::format(
          "The log of {} contains the cause and the attempts that are left.", row.owner));
      shown.steps = {{std::move(peek)}};
      if (!offset)
        continue;
      shown.steps.push_back({fmt::format("{} --offset {}", command("try", row.partition), *offset),
                             "shows what the next attempt would do"});
      // Only the next message of a partition can be skipped.
      if (row.retrying() || *offset == row.stored.next()) {
        shown.texts.emplace_back("The message can be skipped now, before its attempts end.");
        shown.steps.push_back({fmt::format("{} --offset {} --because TEXT",
                                           command("partitions skip", row.partition), *offset),
                               "if the cause cannot be fixed"});
      }
    }
  }

  void add_probation() {
    for (const auto* partition : urgent_) {
      if (!partition->row || !partition->row->on_probation() || partition->row->any_retrying())
        continue;
      const auto& row = *partition->row;
      const auto& suspect = *row.suspect;
      // The partitions of one process take turns with it.
      std::set<std::string> waiting;
      for (const auto& other : status_.partitions) {
        if (other.row && other.row->owned() && other.row->owner == row.owner &&
            other.row->partition != row.partition)
          waiting.insert(other.row->partition.topic);
      }
      auto& shown = add("ON PROBATION", {name_of(row.partition, suspect.offset),
                                         fmt::format("lag {}", known_text(partition->lag()))});
      shown.texts = {fmt::format(
          "A process exited while it may have processed this message. {}; {} since while they "
          "processed no other message.",
          suspect.runs ? "The message is processed alone now"
                       : "The message will be processed alone",
          counted(suspect.crashes, "process has exited", "processes have exited"))};
      shown.texts.push_back(
          waiting.empty()
              ? std::string("Its process has no other partition that waits for it.")
              : fmt::format("Meanwhile, the other partitions of its process {} wait (of {}). Then "
                            "they continue for at least as long.",
                            row.owner, fmt::join(waiting, ", ")));
      shown.texts.emplace_back(suspect.crashes == 0
                                   ? "No action needed."
                                   : "Check the exit codes of those processes, and the kernel's "
                                     "log for an OOM kill.");
    }
  }

  /// The stored offset waits for one message, and messages after it are finished.
  void add_ahead() {
    for (const auto* partition : urgent_) {
      if (!partition->row || partition->row->ahead.finished == 0)
        continue;
      const auto& row = *partition->row;
      auto& shown = add("FINISHED OUT OF ORDER", {name_of(row.partition, row.stored.next())});
      // The register does not contain when the message arrived: it delays the offset since another
      // message could finish before it, and since it is the next one.
      const auto since = row.ahead.since.empty()
                             ? std::string()
                             : age_text(status_, std::max(row.ahead.since, row.updated_at));
      shown.texts = {fmt::format(
          "This message delays the stored offset{}. {} after it {} finished, up to offset {}.",
          since.empty() ? "" : " for " + since, counted(row.ahead.finished, "message", "messages"),
          row.ahead.finished == 1 ? "is" : "are", row.ahead.up_to)};
    }
  }

  void add_differing() {
    for (const auto& topic : status_.differing) {
      std::vector<std::string> groups;
      for (const auto& owners : topic.owners)
        groups.push_back(fmt::format("{}", fmt::join(owners, ", ")));
      auto& shown = add("HANDLERS DIFFER", {topic.topic, topic.difference});
      shown.texts = {
          fmt::format("Processes handle this topic differently: {}.", fmt::join(groups, " | ")),
          "This is normal during a deployment. Otherwise, give the processes the same "
          "configuration and program."};
    }
  }

  const Status& status_;
  const std::string now_;  ///< RFC 3339
  std::vector<const StatusPartition*> urgent_;
  std::vector<Problem> problems_;
};

}  // namespace

HaltView halt_view(const Status& status, const ledger::RegisterRow& row) {
  if (row.state == PartitionState::kPaused) {
    return {{},
            row.operator_reason,
            {},
            {{fmt::format("{} {}", command_text(status.invocation, "partitions resume"),
                          short_partition_words(row.partition))}}};
  }
  const auto found = status.halts.find(row.partition);
  if (found == status.halts.end()) {
    const auto statement = row.halt.parameter(ledger::halt_parameter::kStatement);
    return {row.halt.handler, texts::located(statement, row.halt.cause), {}, {}};
  }
  return view_of(status, row.partition, row.halt.handler, found->second);
}

std::string age_text(const Status& status, const std::string& time) {
  const auto at = config::parse_time(time);
  return at ? ops::span_text((status.now_ms - *at) / 1000) : "?";
}

std::string_view page_of(std::string_view heading) {
  struct Page {
    std::string_view heading;
    std::string_view page;
  };
  static constexpr Page kPages[] = {
      {"POSTGRESQL", "docs/runbook/progress.md#6-unreachable-servers"},
      {"KAFKA", "docs/runbook/progress.md#6-unreachable-servers"},
      {"TOPICS", "docs/runbook/progress.md#headings-of-pawl-status"},
      {"HALTED", "docs/runbook/halts.md"},
      {"WILL HALT", "docs/runbook/halts.md#codes-of-a-position"},
      {"BLOCKED", "docs/runbook/incidents.md#a-partition-that-waits-for-a-lock"},
      {"UNREACHABLE", "docs/runbook/incidents.md#an-unreachable-remote-service"},
      {"WAITING FOR KAFKA", "docs/runbook/incidents.md#kafka-is-unreachable"},
      {"UNOWNED", "docs/runbook/progress.md#2-unowned-partitions"},
      {"NOT STARTED", "docs/runbook/progress.md#2-unowned-partitions"},
      {"STALLED", "docs/runbook/progress.md#7-a-slow-handler"},
      {"RETRYING", "docs/runbook/progress.md#8-a-message-that-is-retried"},
      {"ON PROBATION", "docs/crash-isolation.md"},
      {"PAUSED", "docs/runbook/progress.md#5-paused-partitions"},
      {"FINISHED OUT OF ORDER", "docs/runbook/progress.md#7-a-slow-handler"},
      {"HANDLERS DIFFER", "docs/runbook/incidents.md#different-handlers-in-one-group"},
  };
  const auto* const found = std::ranges::find(kPages, heading, &Page::heading);
  return found == std::end(kPages) ? std::string_view{} : found->page;
}

std::vector<Problem> problems_of(const Status& status) {
  return Problems(status).all();
}

}  // namespace pawl::cli
