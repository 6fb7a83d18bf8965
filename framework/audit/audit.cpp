#include "audit/audit.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "config/invocation.hpp"
#include "config/shell_word.hpp"
#include "engine/message_key.hpp"
#include "handlers/topic_entries.hpp"
#include "kafka/answers.hpp"
#include "kafka/log_reader.hpp"

namespace pawl::engine {
namespace {

constexpr std::chrono::milliseconds kTimeout{10000};
/// For one record; a broker may be busy with others.
constexpr std::chrono::milliseconds kPatience{60000};
constexpr std::int64_t kProgressEvery = 1000;

bool is_empty(const ledger::OffsetRange& range) {
  return range.after >= range.upto;
}

}  // namespace

Audit::Audit(const Options& options, const handlers::Router& router, postgres::Session& session,
             const kafka::Client& kafka, ledger::ConsumerId consumer, AuditFindings& findings)
    : options_(options),
      session_(session),
      kafka_(kafka),
      consumer_(consumer),
      findings_(findings),
      view_(session, options.postgres.schema, consumer),
      context_{options, router, view_, {}, {}, findings} {}

std::vector<AuditedPartition> Audit::run(const AuditRequest& request, const Progress& progress) {
  // A pass over all keys may take longer than a message may. Through a pooler the server's own
  // setting counts.
  session_.require_statement_timeout(std::chrono::milliseconds{0});
  const ledger::AuditChecks checks(session_, options_.postgres.schema, consumer_, request.filter);
  auto partitions = choose(request);
  ask_kafka(partitions);
  for (const auto& partition : partitions)
    check_position(partition);
  check_leader_epochs(partitions);

  std::vector<ledger::OffsetRange> counted;
  std::vector<std::string> since;
  for (const auto& partition : partitions) {
    counted.push_back({partition.row.partition, partition.row.base, partition.row.stored});
    since.push_back(partition.row.since);
  }
  context_.pruned = view_.pruned();
  const auto recorded = checks.recorded(counted, since);
  for (const auto& partition : partitions) {
    const auto found = recorded.find(partition.row.partition);
    check_counters(partition, found == recorded.end() ? ledger::RecordedCounts{} : found->second);
  }
  if (!request.fast) {
    limit_ranges(request, partitions);
    read_records(partitions, progress);
  }
  check_database(request, checks, partitions);
  return partitions;
}

std::vector<AuditedPartition> Audit::choose(const AuditRequest& request) {
  std::vector<AuditedPartition> partitions;
  const auto& topics = request.filter.topics;
  for (auto& row : view_.rows()) {
    const bool wanted =
        std::find(topics.begin(), topics.end(), row.partition.topic) != topics.end() &&
        (!request.filter.partition || *request.filter.partition == row.partition.partition);
    if (!wanted)
      continue;
    auto& chosen = partitions.emplace_back();
    chosen.row = std::move(row);
    chosen.range = {chosen.row.partition, chosen.row.stored, chosen.row.stored};
  }
  return partitions;
}

/// Behind the rows: what is stored was in the log before.
void Audit::ask_kafka(std::vector<AuditedPartition>& partitions) {
  std::vector<std::string> topics;
  for (const auto& partition : partitions) {
    if (topics.empty() || topics.back() != partition.row.partition.topic)
      topics.push_back(partition.row.partition.topic);
  }
  const auto described = kafka_.describe(topics, kTimeout);
  std::vector<TopicPartition> existing;
  std::erase_if(partitions, [&](const AuditedPartition& partition) {
    const auto& row = partition.row;
    const auto found = described.find(row.partition.topic);
    if (found == described.end() || row.partition.partition >= found->second.partitions) {
      report(partition, audit_kind::kTopic, "Kafka has no such partition",
             "if the topic was deleted on purpose, take it out of the configuration");
      return true;
    }
    if (!row.topic_id.empty() && !found->second.id.empty() && row.topic_id != found->second.id) {
      report(partition, audit_kind::kTopic,
             "the topic was deleted and created again: its offsets are not those of the register, "
             "so its records were not looked at",
             fmt::format("state where to go on: `{} --topic {} --all --to earliest`",
                         command_text(options_.invocation, "offsets set"),
                         shell_word(row.partition.topic)));
      return true;
    }
    topic_ids_[row.partition.topic] = found->second.id;
    existing.push_back(row.partition);
    return false;
  });
  const auto ranges = kafka_.log_ranges(existing, kTimeout);
  for (auto& partition : partitions)
    partition.log = kafka::answered(ranges, partition.row.partition);
}

void Audit::limit_ranges(const AuditRequest& request,
                         std::vector<AuditedPartition>& partitions) const {
  std::map<TopicPartition, std::int64_t> from;
  if (request.from_timestamp) {
    std::vector<TopicPartition> all;
    for (const auto& partition : partitions)
      all.push_back(partition.row.partition);
    from = kafka_.offsets_at(all, *request.from_timestamp, kTimeout);
  }
  for (auto& partition : partitions) {
    auto& after = partition.range.after;
    after = std::max(partition.row.base, partition.log.start - 1);
    if (const auto found = from.find(partition.row.partition); found != from.end())
      after = std::max(after, found->second - 1);
    if (request.newest)
      after = std::max(after, partition.row.stored - *request.newest);
    after = std::min(after, partition.range.upto);
  }
}

void Audit::read_records(std::vector<AuditedPartition>& partitions, const Progress& progress) {
  std::vector<ledger::OffsetRange> ranges;
  std::vector<std::string> since;
  for (const auto& partition : partitions) {
    if (is_empty(partition.range))
      continue;
    ranges.push_back(partition.range);
    since.push_back(partition.row.since);
  }
  if (ranges.empty())
    return;
  context_.key_counts = view_.count_keys(ranges, since, kAuditWindow);
  const auto steps_back = view_.steps_back();
  for (auto& partition : partitions) {
    if (is_empty(partition.range))
      continue;
    const auto& name = partition.row.partition;
    const auto steps = steps_back.find(name);
    AuditRecords records(
        context_, partition.row, partition.range,
        steps == steps_back.end() ? std::vector<ledger::StepBack>{} : steps->second,
        topic_ids_[name.topic]);
    const bool whole =
        read_log(partition, records, progress) && partition.range.after == partition.row.base;
    records.finish();
    partition.tally = records.tally();
    if (whole)
      check_records_counted(partition);
  }
}

bool Audit::read_log(AuditedPartition& partition, AuditRecords& records, const Progress& progress) {
  const auto upto = partition.range.upto;
  auto next = partition.range.after + 1;
  bool whole = true;
  while (next <= upto) {
    try {
      kafka::LogReader reader(kafka_, partition.row.partition, next, kPatience);
      while (next <= upto) {
        const auto record = reader.next();
        // What open transactions wrote lies behind the end that a consumer sees.
        if (!record)
          return whole && partition.log.end > upto;
        next = record->offset() + 1;
        if (record->offset() > upto)
          break;
        records.look_at(*record);
        if (record->offset() % kProgressEvery == 0)
          progress(partition, record->offset());
      }
    } catch (const kafka::KafkaError& error) {
      if (error.kind() == kafka::ErrorKind::kUnreadable) {
        report(partition, audit_kind::kUnreadable,
               fmt::format("{}; the records from there on were not looked at", error.what()),
               "the broker's log is damaged there: let a replica lead that has it whole");
        return false;
      }
      // Kafka's retention may remove records before they are read here.
      if (error.kind() != kafka::ErrorKind::kPositionRefused)
        throw;
      const auto ranges = kafka_.log_ranges({partition.row.partition}, kTimeout);
      if (ranges.empty() || ranges.begin()->second.start <= next)
        throw;
      next = ranges.begin()->second.start;
      whole = false;
    }
  }
  return whole;
}

std::vector<ledger::HandlerScope> Audit::handler_scopes() const {
  std::vector<ledger::HandlerScope> scopes;
  std::string buffer;
  const auto& bindings = context_.router.bindings();
  std::vector<std::string> stored;
  for (const auto& row : view_.rows())
    stored.push_back(row.partition.topic);
  std::ranges::sort(stored);
  stored.erase(std::unique(stored.begin(), stored.end()), stored.end());
  const auto options = handlers::with_topics(options_, stored);
  for (std::size_t i = 0; i < bindings.size(); ++i) {
    for (const auto& topic : options.handlers[i].topics) {
      const auto found = context_.pruned.scopes.find(
          scope_name(options_.kafka, bindings[i]->scope, topic, buffer));
      if (found != context_.pruned.scopes.end())
        scopes.push_back({topic, bindings[i]->label, found->second});
    }
  }
  return scopes;
}

}  // namespace pawl::engine
