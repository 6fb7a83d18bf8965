// The screen of `status`: what is wrong and what to do stands first, and it stays one screen.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <functional>
#include <map>
#include <set>
#include <string_view>

#include "cli/counted.hpp"
#include "cli/status.hpp"
#include "config/document.hpp"
#include "config/invocation.hpp"
#include "console/partition_view.hpp"
#include "console/printable.hpp"
#include "console/table.hpp"
#include "console/topics_seen.hpp"
#include "engine/conditions.hpp"
#include "engine/topic_directory.hpp"
#include "ops/catching_up.hpp"
#include "outbox/outbox_status.hpp"

namespace pawl::cli {
namespace {

constexpr std::size_t kMostPartitions = 20;
constexpr std::size_t kMostReasons = 5;
constexpr std::size_t kMostLetters = 8;
/// A transaction that is open for longer makes the register's rows pile up noticeably; every
/// message's own is a short one.
constexpr std::int64_t kLongOpenSeconds = 60;

/// How long ago a time in RFC 3339 was.
std::string age_text(const Status& status, const std::string& time) {
  const auto at = config::parse_time(time);
  return at ? ops::span_text((status.now_ms - *at) / 1000) : "?";
}

std::string rate_text(std::optional<double> rate) {
  return rate ? fmt::format("{:.0f}/s", *rate) : "?";
}

std::string shown_state(const StatusPartition& partition) {
  if (!partition.row)
    return partition.concern ? "-" : "?";
  if (partition.concern == Concern::kStalled)
    return to_string(Concern::kStalled);
  return state_text(*partition.row);
}

std::string shown_owner(const StatusPartition& partition) {
  if (!partition.row)
    return partition.concern ? "nobody" : "?";
  return owner_text(*partition.row);
}

/// What needs a person first, then by lag.
std::vector<const StatusPartition*> by_urgency(const Status& status) {
  std::vector<const StatusPartition*> sorted;
  for (const auto& partition : status.partitions)
    sorted.push_back(&partition);
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const StatusPartition* one, const StatusPartition* other) {
                     if (one->concern != other->concern)
                       return one->concern > other->concern;
                     return one->lag().value_or(0) > other->lag().value_or(0);
                   });
  return sorted;
}

std::string partitions_text(const Status& status, bool all) {
  if (status.partitions.empty())
    return "";
  std::vector<const StatusPartition*> shown;
  if (all || status.partitions.size() <= kMostPartitions) {
    for (const auto& partition : status.partitions)
      shown.push_back(&partition);
  } else {
    shown = by_urgency(status);
    shown.resize(kMostPartitions);
  }
  using Align = Table::Align;
  Table table({{"TOPIC"},
               {"PARTITION", Align::kRight},
               {"STATE"},
               {"STORED", Align::kRight},
               {"END", Align::kRight},
               {"LAG", Align::kRight},
               {"RATE", Align::kRight},
               {"ETA", Align::kRight},
               {"FOR", Align::kRight},
               {"OWNER"}});
  for (const auto* partition : shown) {
    const auto& row = partition->row;
    const auto lag = partition->lag();
    const std::string unstored = partition->concern ? "-" : "?";
    table.add({partition->partition.topic, std::to_string(partition->partition.partition),
               shown_state(*partition), row ? stored_text(*row) : unstored,
               known_text(partition->end), known_text(lag), rate_text(partition->rate),
               partition->eta_seconds ? ops::span_text(*partition->eta_seconds) : "?",
               row ? age_text(status, row->state_since) : "?", shown_owner(*partition)});
  }
  auto text = '\n' + table.text();
  if (shown.size() < status.partitions.size()) {
    text +=
        fmt::format("... and {} more, none of them more urgent; --all shows them\n",
                    grouped(static_cast<std::int64_t>(status.partitions.size() - shown.size())));
  }
  return text;
}

std::string retrying_text(const Status& status, const ledger::RegisterRow& row) {
  std::string meanwhile = "the partition waits meanwhile.";
  std::string which;
  const auto offset = row.retried_offset().value_or(-1);
  if (!row.retrying()) {
    meanwhile = "messages that need not wait for it go on meanwhile.";
    if (row.ahead.trying > 1)
      meanwhile +=
          fmt::format(" {} retried as well.",
                      counted(row.ahead.trying - 1, "other message is", "other messages are"));
    which = fmt::format(" --offset {}", offset);
  }
  return fmt::format(
      "\n{} RETRYING offset {}: {} of it failed; {}\n"
      "  The log of {} says why and how many attempts are left. The message: {} {}{}\n",
      name_of(row.partition), offset, counted(row.failed_attempts(), "attempt", "attempts"),
      meanwhile, row.owner, command_text(status.invocation, "partitions peek"),
      partition_words(row.partition), which);
}

/// What is said of the most urgent partitions of which there is something to say. `others`: what
/// those are that are left out.
std::string first_texts(const Status& status, bool all, std::string_view others,
                        const std::function<std::string(const ledger::RegisterRow&)>& text_of) {
  std::string text;
  std::size_t shown = 0;
  std::size_t left_out = 0;
  for (const auto* partition : by_urgency(status)) {
    const auto said = partition->row ? text_of(*partition->row) : std::string();
    if (said.empty())
      continue;
    if (!all && shown >= kMostReasons) {
      ++left_out;
      continue;
    }
    ++shown;
    text += said;
  }
  if (left_out > 0)
    text += fmt::format("\n... and {} more {}; --all shows them\n",
                        grouped(static_cast<std::int64_t>(left_out)), others);
  return text;
}

std::string probation_text(const Status& status, const ledger::RegisterRow& row) {
  // Whatever else its process has takes turns with it.
  std::set<std::string> waiting;
  for (const auto& partition : status.partitions) {
    if (partition.row && partition.row->owned() && partition.row->owner == row.owner &&
        partition.row->partition != row.partition)
      waiting.insert(partition.row->partition.topic);
  }
  const auto others = waiting.empty()
                          ? std::string("Its process has no other partition that waits for it.")
                          : fmt::format(
                                "While it runs, the other partitions of its process {} "
                                "wait (of {}); then they run for at least as long.",
                                row.owner, fmt::join(waiting, ", "));
  return fmt::format(
      "\n{} [{}] is on PROBATION at offset {}: a process ended while it may have run the message.\n"
      "  {}; {} since while they ran nothing else (docs/failures.md).\n"
      "  {}\n"
      "  {}\n",
      row.partition.topic, row.partition.partition, row.suspect->offset,
      row.suspect->runs ? "It runs alone now" : "It will run alone",
      counted(row.suspect->crashes, "process has ended", "processes have ended"), others,
      row.suspect->crashes == 0
          ? "No action needed."
          : "Check the exit codes of those processes, and the kernel's log for an OOM kill.");
}

std::string reason_text(const Status& status, const ledger::RegisterRow& row) {
  if (row.any_retrying())
    return retrying_text(status, row);
  if (row.on_probation())
    return probation_text(status, row);
  if (row.state == ledger::PartitionState::kRunning)
    return "";
  const bool halted = row.state == ledger::PartitionState::kHalted;
  return fmt::format("\n{} [{}] {} since {}:\n  {}\n", row.partition.topic, row.partition.partition,
                     halted ? "HALTED" : "paused", row.state_since,
                     row.reason.empty() ? "(no reason given)" : row.reason);
}

/// Of a partition whose stored offset waits for a message behind which others are finished.
std::string ahead_text(const Status& status, const ledger::RegisterRow& row) {
  if (row.ahead.finished == 0)
    return "";
  auto text = fmt::format(
      "\n{} [{}] is ahead of its stored offset: {} finished behind it, up to offset {}.\n"
      "  The message behind offset {} ",
      row.partition.topic, row.partition.partition,
      counted(row.ahead.finished, "message", "messages"), row.ahead.up_to, row.stored.last());
  // The register does not know when the message came: it is in the way since another one could
  // have been passed, and since it is the next.
  if (row.ahead.since.empty())
    return text + "holds it back.\n";
  return text + fmt::format("has held it back for {}.\n",
                            age_text(status, std::max(row.ahead.since, row.updated_at)));
}

/// Empty where every call is recorded.
std::string leases_text(const Status& status) {
  if (!status.leases)
    return "";
  const auto& counts = *status.leases;
  std::vector<std::string> parts;
  std::string commands;
  const auto listed = [&](const char* which) {
    commands += fmt::format("{} {}\n", command_text(status.invocation, "calls list"), which);
  };
  if (counts.in_hand > 0)
    parts.push_back(fmt::format("{} in hand", grouped(counts.in_hand)));
  if (counts.done > 0)
    parts.push_back(fmt::format("{} done and to be recorded", grouped(counts.done)));
  if (counts.unknown > 0) {
    parts.push_back(fmt::format("{} unknown: nobody knows what they did", grouped(counts.unknown)));
    listed("--unknown");
  }
  if (counts.losses > 0) {
    parts.push_back(fmt::format("{} that lost their lease", grouped(counts.losses)));
    listed("--lost");
  }
  return parts.empty() ? "" : fmt::format("\nCalls: {}.\n{}", fmt::join(parts, "; "), commands);
}

std::string letters_text(const Status& status, bool all) {
  if (status.letters.empty())
    return "";
  using Align = Table::Align;
  Table table({{"DEAD LETTERS OF", Align::kLeft},
               {"HANDLER"},
               {"REASON"},
               {"STATUS"},
               {"LETTERS", Align::kRight},
               {"OLDEST", Align::kRight}});
  const auto most = all ? status.letters.size() : std::min(kMostLetters, status.letters.size());
  for (std::size_t i = 0; i < most; ++i) {
    const auto& count = status.letters[i];
    table.add({count.topic, count.handler.empty() ? "-" : count.handler, count.reason, count.status,
               std::to_string(count.letters), age_text(status, count.oldest)});
  }
  auto text = '\n' + table.text();
  if (most < status.letters.size())
    text += fmt::format("... and {} more groups; --all shows them\n", status.letters.size() - most);
  std::string next;
  for (const auto& count : status.letters) {
    if (!count.next_due.empty() && (next.empty() || count.next_due < next))
      next = count.next_due;
  }
  if (!next.empty())
    text +=
        fmt::format("The next of those that are tried again by themselves is due at {}.\n", next);
  const auto left = status.server.left_parked_keys;
  const auto replay = command_text(status.invocation, "dlq replay");
  if (const auto waiting = status.server.parked_keys - left; waiting > 0) {
    text += fmt::format("Later messages of {} wait behind a dead letter or a scheduled retry.\n",
                        counted(waiting, "record key", "record keys"));
  }
  if (left > 0) {
    text += fmt::format(
        "Parked messages of {}, of which no dead letter is left, wait for: {} --all --reason "
        "parked\n",
        counted(left, "record key", "record keys"), replay);
  }
  return text + fmt::format(
                    "They are listed by: {}\nOne of them, by its number: {} ID\nAll are processed "
                    "again by: "
                    "{} --all\nOr given up, one by its number: {} ID --because TEXT\n",
                    command_text(status.invocation, "dlq list"),
                    command_text(status.invocation, "dlq show"), replay,
                    command_text(status.invocation, "dlq discard"));
}

std::string holder_text(const ledger::HorizonHolder& holder) {
  auto text = fmt::format("{} {}", holder.what, holder.name);
  if (!holder.application.empty())
    text += fmt::format(" \"{}\"", holder.application);
  if (!holder.user.empty())
    text += fmt::format(" of {}", holder.user);
  if (!holder.state.empty())
    text += fmt::format(", {}", holder.state);
  if (holder.since)
    text += fmt::format(", open for {}", ops::span_text(*holder.since));
  return text + fmt::format(", {} begun meanwhile",
                            counted(holder.transactions, "transaction has", "transactions have"));
}

std::string server_text(const Status& status) {
  const auto& server = status.server;
  const auto holder = std::ranges::find_if(server.holders, [](const ledger::HorizonHolder& one) {
    return one.since ? *one.since >= kLongOpenSeconds : one.transactions > 0;
  });
  const bool held = holder != server.holders.end();
  std::string text = "\nVacuum is held back by: ";
  text += held                     ? holder_text(*holder)
          : server.holders.empty() ? "nothing"
                                   : fmt::format("nothing for {} s", kLongOpenSeconds);
  text += '\n';
  if (held && holder->since) {
    text += "  Every message gets slower until that ends (docs/observe.md, \"What to watch\").\n";
  }
  if (!server.sees_all) {
    text += fmt::format(
        "  This role does not see since when other roles' sessions are open. A superuser permits "
        "it "
        "by:\n  GRANT pg_read_all_stats TO {};\n",
        server.role);
  }
  text +=
      fmt::format("Connections: {} of this consumer, {} of pawl in all, {} of {} of the server\n",
                  server.consumer_connections, server.pawl_connections, server.connections,
                  server.max_connections);
  return text;
}

std::string differing_text(const ledger::DifferingTopic& topic) {
  std::vector<std::string> groups;
  for (const auto& owners : topic.owners)
    groups.push_back(fmt::format("{}", fmt::join(owners, ", ")));
  return fmt::format(
      "\n{} is handled in different ways ({}) by {}: normal during a deployment; else give them "
      "one configuration and program.\n",
      topic.topic, topic.difference, fmt::join(groups, " | "));
}

std::string conditions_text(const Status& status) {
  std::string text;
  for (const auto& [condition, owners] : ledger::shared_conditions(status.conditions)) {
    text += fmt::format("\n{} {}.\n  Reported by: {}\n", condition.what, engine::text_of(condition),
                        fmt::join(owners, ", "));
  }
  return text;
}

/// Of those that somebody has had. A process whose session is gone may have been killed, or connect
/// again: only what it told lately speaks for it, and that is not enough to count on.
std::string unowned_text(const Status& status) {
  std::int64_t unowned = 0;
  std::set<std::string> gone;
  for (const auto& partition : status.partitions) {
    if (!partition.row || partition.row->owned())
      continue;
    ++unowned;
    if (partition.row->session_gone)
      gone.insert(partition.row->owner);
  }
  if (unowned == 0)
    return "";
  std::vector<std::string> running;
  std::vector<std::string> silent;
  for (const auto& process : status.processes)
    (gone.contains(process) ? silent : running).push_back(process);
  auto text =
      fmt::format("\n{} without owner: nothing is processed there until a process takes {}",
                  counted(unowned, "partition", "partitions"), unowned == 1 ? "it" : "them");
  if (!running.empty()) {
    return text +
           fmt::format(
               ".\n  Running: {}. No action needed: Kafka assigns them. A process that ended "
               "without leaving the group keeps its\n  partitions for {}.\n",
               fmt::join(running, ", "), status.place_kept);
  }
  if (!silent.empty()) {
    return text + fmt::format(
                      ".\n  {} ran within the last {} s, and has no session now: it was killed, or "
                      "connects again.\n  If it does not run any more: {}\n",
                      fmt::join(silent, ", "), ledger::kLiveProcess.count(),
                      command_text(status.invocation, "run"));
  }
  return text + fmt::format(": {}\n", command_text(status.invocation, "run"));
}

std::string unstored_texts(const Status& status) {
  const auto whole = unstored_topics(status);
  std::map<std::string, UnstoredPartitions> unstored;
  for (const auto& partition : status.partitions) {
    if (!partition.row)
      unstored[partition.partition.topic].partitions.push_back(partition.partition.partition);
  }
  std::string text;
  for (auto& [topic, one] : unstored) {
    one.topic = topic;
    one.all = std::ranges::find(whole, topic) != whole.end();
    text += fmt::format("\n{}\n", unstored_text(one, status.invocation));
  }
  return text;
}

}  // namespace

std::string status_text(const Status& status, bool all) {
  auto text = fmt::format("{}: {}\n", status.group, verdict_of(status));
  if (!status.postgres_problem.empty()) {
    std::string_view problem = status.postgres_problem;
    if (const auto known = fmt::format("cannot connect to {}: ", status.database);
        problem.starts_with(known))
      problem.remove_prefix(known.size());
    text += fmt::format(
        "PostgreSQL at {}: {}\n  That is the result of this command's own connection. Sessions "
        "that "
        "processes have open may continue: see /ready and the log of each process.\n",
        status.database, problem);
  }
  if (!status.kafka_problem.empty()) {
    text += fmt::format("Kafka at {}: {}; so ends and lags are unknown\n", status.bootstrap_servers,
                        status.kafka_problem);
  }
  for (const auto& topic : status.missing_topics)
    text += missing_topic_text(topic) + '\n';
  for (const auto& topic : status.gone_topics)
    text += gone_topic_text(topic) + '\n';
  for (const auto& [topic, why] : status.refused_topics)
    text += engine::topic_refused_text(topic, why) + ".\n";
  for (const auto& [topic, why] : status.ambiguous_topics)
    text += why + ".\n";
  text += partitions_text(status, all);
  text += conditions_text(status);
  text += unowned_text(status);
  if (status.postgres_problem.empty())
    text += unstored_texts(status);
  for (const auto& topic : status.differing)
    text += differing_text(topic);
  text += first_texts(status, all, "of them",
                      [&](const auto& row) { return reason_text(status, row); });
  text += first_texts(status, all, "partitions ahead of their offsets",
                      [&](const auto& row) { return ahead_text(status, row); });
  text += letters_text(status, all);
  text += leases_text(status);
  if (status.outbox && (status.outbox->waiting() > 0 || status.outbox->set_apart > 0))
    text += fmt::format("\nOutbox: {}.\n", outbox_text(*status.outbox, status.invocation));
  if (status.postgres_problem.empty())
    text += server_text(status);
  // Reasons are of several lines.
  return printable_lines(text);
}

}  // namespace pawl::cli
