// What an audit checks without looking at single records: positions, counters, and the rows of the
// database among themselves.
#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "audit/audit.hpp"
#include "config/invocation.hpp"
#include "console/counted.hpp"
#include "kafka/refused_positions.hpp"

namespace pawl::engine {
namespace {

constexpr std::chrono::milliseconds kTimeout{10000};
/// BookRow::since of counters that began with first contact.
constexpr std::string_view kEver = "-infinity";
/// For the answers about many positions; a broker may be busy with others.
constexpr std::chrono::milliseconds kPatience{60000};

}  // namespace

std::string Audit::set_command(const TopicPartition& partition) const {
  return fmt::format("`{} {} --to OFFSET`", command_text(options_.invocation, "offsets set"),
                     partition_words(partition));
}

void Audit::report(const AuditedPartition& partition, const char* kind, std::string text,
                   std::string remedy) {
  findings_.add(
      {kind, partition.row.partition, std::nullopt, "", std::move(text), std::move(remedy)});
}

void Audit::report(const ledger::Strays& strays, const char* kind, const char* text,
                   const char* remedy) {
  for (const auto& row : strays.rows) {
    const bool is_key = row.what == "key";
    findings_.add({kind, row.partition, row.offset, is_key ? row.name : std::string(),
                   fmt::format("{}{} {}", row.what, is_key ? "" : " " + row.name, text), remedy});
  }
  findings_.count(std::nullopt, strays.total - static_cast<std::int64_t>(strays.rows.size()));
}

void Audit::check_position(const AuditedPartition& partition) {
  const auto& row = partition.row;
  if (row.stored < row.base) {
    report(partition, audit_kind::kOffset,
           fmt::format("the next offset {} is before {}, where the counters start", row.stored + 1,
                       row.base + 1),
           "it was moved by other means than `offsets set`. Set it: " + set_command(row.partition));
  }
  if (row.stored >= partition.log.end &&
      row.stored >= kafka_.high_watermark(row.partition, kTimeout)) {
    report(partition, audit_kind::kOffset,
           fmt::format("the next offset {} is after the end of Kafka's log, {}", row.stored + 1,
                       partition.log.end),
           "the log was truncated, or the offset was moved. Find out which, then " +
               set_command(row.partition));
  }
  if (row.stored + 1 >= partition.log.start)
    return;
  // A running consumer may have continued before Kafka reported the log's start.
  const auto rows = view_.rows();
  const auto now = std::find_if(rows.begin(), rows.end(), [&](const auto& other) {
    return other.partition == row.partition;
  });
  if (now == rows.end() || now->stored != row.stored)
    return;
  report(
      partition, audit_kind::kOffset,
      fmt::format("Kafka's log starts at {}: the records from {} on were removed before they were "
                  "processed",
                  partition.log.start, row.stored + 1),
      "get them from another source if you can, then " + set_command(row.partition));
}

/// A log that lost its end and has grown again is as long as before.
void Audit::check_leader_epochs(const std::vector<AuditedPartition>& partitions) {
  std::map<TopicPartition, kafka::LogPosition> positions;
  for (const auto& [row, log, range, tally] : partitions) {
    const auto next = row.stored + 1;
    if (row.leader_epoch && next >= log.start && next <= log.end) {
      positions[row.partition] = {next, static_cast<std::int32_t>(*row.leader_epoch)};
    }
  }
  const auto refused = kafka::refused_positions(kafka_, positions, kPatience);
  for (const auto& partition : partitions) {
    const auto& row = partition.row;
    const auto found = refused.find(row.partition);
    if (found == refused.end())
      continue;
    report(partition, audit_kind::kOffset,
           fmt::format("Kafka's log no longer contains the last processed record, {} (leader epoch "
                       "{}): {}",
                       row.stored, *row.leader_epoch, found->second),
           "the log was truncated, and has other records at these offsets now. Find out which were "
           "lost, then " +
               set_command(row.partition));
  }
}

void Audit::check_counters(const AuditedPartition& partition,
                           const ledger::RecordedCounts& recorded) {
  const auto& row = partition.row;
  const auto wrong = [&](std::string text, const char* remedy) {
    report(partition, audit_kind::kCounters, std::move(text), remedy);
  };
  if (row.counted() > row.stored - row.base) {
    wrong(fmt::format("{} counted from offset {} on, but only {} the next one, {}",
                      cli::counted(row.counted(), "message is", "messages are"), row.base + 1,
                      cli::counted(std::max<std::int64_t>(0, row.stored - row.base),
                                   "offset precedes", "offsets precede"),
                      row.stored + 1),
          "the offset was moved back by other means than `offsets set`, or a counter was changed");
  }
  // Retention removes records of resolved messages, and stores only until when.
  if (context_.pruned.records_to)
    return;
  if (row.dead + row.parked > recorded.letters) {
    wrong(fmt::format(
              "{} dead-lettered or parked from offset {} on, but only {} in pawl.dead_letters",
              cli::counted(row.dead + row.parked, "message was", "messages were"), row.base + 1,
              cli::counted(recorded.letters, "row is", "rows are")),
          "rows were removed: an audit without --fast names the messages; `offsets set` to one "
          "delivers it again");
  }
  if (row.skipped > recorded.skips) {
    wrong(fmt::format("{} skipped from offset {} on, but only {} in pawl.skipped_messages",
                      cli::counted(row.skipped, "message was", "messages were"), row.base + 1,
                      cli::counted(recorded.skips, "row is", "rows are")),
          "rows were removed: an audit without --fast names the messages");
  }
}

/// The whole of what the counters counted was read. Offsets without a record were removed by
/// compaction, or belong to transactions: the former were counted, the latter were not.
void Audit::check_records_counted(const AuditedPartition& partition) {
  const auto& row = partition.row;
  const auto& tally = partition.tally;
  const auto holes = row.stored - row.base - tally.records;
  if (row.counted() < tally.records) {
    report(partition, audit_kind::kCounters,
           fmt::format("Kafka has {} from offset {} on and before the next one, {}, but only "
                       "{} counted as processed",
                       cli::counted(tally.records, "message", "messages"), row.base + 1,
                       row.stored + 1, cli::counted(row.counted(), "is", "are")),
           "the offset was moved forward by other means than `offsets set`, or a counter was "
           "changed");
    return;
  }
  // Anything found before would show here again.
  if (findings_.of(row.partition) > 0)
    return;
  const auto applied = row.applied - row.unchecked;
  // A key that retention removed may have been claimed again elsewhere: its first message now looks
  // like a duplicate.
  const bool pruned =
      std::any_of(context_.pruned.scopes.begin(), context_.pruned.scopes.end(),
                  [](const auto& scope) { return scope.second.pruned_to.has_value(); });
  const auto perhaps = tally.applied_aside + tally.too_old + holes +
                       (pruned ? tally.duplicates - tally.came_again : 0);
  // A late duplicate renews its key, which then looks as if it was claimed since the counters
  // began; its first message has come again since then, as a duplicate.
  const auto renewed = row.since == kEver ? 0 : row.duplicates;
  // Whose letter was replayed looks as if it was applied at once when retention has removed the
  // letter, but not yet the key.
  const auto replayed = context_.pruned.records_to ? row.dead + row.parked : 0;
  if (tally.applied_since > applied + renewed + replayed ||
      applied > tally.applied_since + perhaps) {
    report(partition, audit_kind::kCounters,
           fmt::format("{} counted as applied with a key from offset {} on, but {} claimed there",
                       cli::counted(applied, "message is", "messages are"), row.base + 1,
                       cli::counted(tally.applied_since, "key was", "keys were")),
           "a counter of pawl.processed_kafka_offsets was changed, or keys were rewritten");
  }
}

void Audit::check_database(const AuditRequest& request, const ledger::AuditChecks& checks,
                           const std::vector<AuditedPartition>& partitions) {
  // At least one row, which carries how many there are.
  const auto limit = [this] { return std::max<std::int64_t>(1, findings_.left()); };
  report(
      checks.beyond_offsets(limit()), audit_kind::kBeyond,
      "is after the last offset that was ever stored",
      "the stored offset was moved back by other means than `offsets set`, or the row was written "
      "by another program");
  report(checks.parked_without_head(limit()), audit_kind::kParked,
         "is parked, but its record key is not in pawl.parked_keys: later messages overtake it",
         "`dlq replay` it soon, or insert the record key's row again");
  report(checks.waiting_for_nothing(limit()), audit_kind::kParked,
         "waits for an earlier dead letter of its record key, and there is none: the key waits "
         "forever",
         "`dlq replay` it");

  std::vector<ledger::OffsetRange> read;
  for (const auto& partition : partitions) {
    if (!request.fast)
      read.push_back(partition.range);
  }
  const auto without_key = [&] {
    return checks.replayed_without_key(handler_scopes(), read, limit());
  };
  auto replayed = without_key();
  if (!replayed.rows.empty()) {
    // Retention may have removed the keys since it was asked.
    if (auto pruned = view_.pruned(); pruned != context_.pruned) {
      context_.pruned = std::move(pruned);
      replayed = without_key();
    }
  }
  report(replayed, audit_kind::kReplayed, "was replayed, but its idempotency key is not stored",
         "check whether its effects exist; if its message arrives again, it is applied again");
}

}  // namespace pawl::engine
