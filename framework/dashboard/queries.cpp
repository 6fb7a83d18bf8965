#include "dashboard/queries.hpp"

#include <algorithm>
#include <functional>

#include "config/invocation.hpp"
#include "console/operator_change.hpp"
#include "dead_letters/dlq.hpp"
#include "engine/halt_rendering.hpp"
#include "message/digest.hpp"
#include "message/idempotency_key.hpp"
#include "postgres/error.hpp"

namespace pawl::dashboard {
namespace {

constexpr std::size_t kResponseBytes = 4096;

std::vector<ledger::SharedCondition> read_conditions(postgres::Session& session,
                                                     const Options& options,
                                                     ledger::ConsumerId consumer) {
  return ledger::shared_conditions(
      ledger::live_conditions(session, options.postgres.schema, consumer));
}

bool matches(const PartitionLine& line, const Fields& filters) {
  const auto topic = field(filters, "topic");
  if (!topic.empty() && line.row.partition.topic.find(topic) == std::string::npos)
    return false;
  const auto state = field(filters, "state");
  if (state == "problem")
    return line.concern() != cli::Concern::kNone;
  if (state == "halted")
    return line.row.state == ledger::PartitionState::kHalted;
  if (state == "paused")
    return line.row.state == ledger::PartitionState::kPaused;
  if (state == "unowned")
    return !line.row.owned();
  return true;
}

std::string halt_of(const ledger::RegisterRow& row, const Options& options) {
  return row.state == ledger::PartitionState::kHalted
             ? engine::halt_text(row.halt, options, row.partition)
             : std::string();
}

}  // namespace

PartitionsPage read_partitions(postgres::Session& session, const Options& options,
                               const Samples& samples, const Fields& filters) {
  PartitionsPage page;
  page.topic = field(filters, "topic");
  page.state = field(filters, "state");
  auto seen = samples.view();
  page.problems = std::move(seen.problems);
  page.total = std::move(seen.total);
  const auto consumer = ledger::find_consumer(session, options.postgres.schema,
                                              options.kafka.cluster, options.kafka.group);
  page.known = consumer.has_value();
  if (!consumer)
    return page;
  page.conditions = read_conditions(session, options, consumer->id);
  const auto blocked = ledger::blocked_partitions(page.conditions);
  std::vector<PartitionLine> lines;
  for (auto& row : ledger::read_register(session, options.postgres.schema, consumer->id, "")) {
    auto& line = lines.emplace_back();
    if (const auto course = seen.courses.find(row.partition); course != seen.courses.end())
      line.course = std::move(course->second);
    line.halt = halt_of(row, options);
    line.blocked = blocked.contains(row.partition);
    line.row = std::move(row);
  }
  page.partitions = lines.size();
  page.lag = lines.empty() || !seen.whole ? std::nullopt : std::optional<std::int64_t>(0);
  for (const auto& line : lines) {
    const auto& lag = line.course.lag;
    page.counts.add(&line.row, line.course.end_before, line.blocked);
    page.lag = page.lag && lag ? std::optional(*page.lag + *lag) : std::nullopt;
  }
  std::erase_if(lines, [&](const auto& line) { return !matches(line, filters); });
  // By topic and partition as they come.
  std::ranges::stable_sort(lines, std::ranges::greater{},
                           [](const auto& line) { return line.concern(); });
  if (static_cast<std::int64_t>(lines.size()) > kMostPartitions) {
    page.left_out = lines.size() - static_cast<std::size_t>(kMostPartitions);
    lines.erase(lines.begin() + kMostPartitions, lines.end());
  }
  page.lines = std::move(lines);
  page.letters = ledger::DeadLetterView(options.postgres.schema, consumer->id)
                     .count_unresolved(session, kMostCounted);
  return page;
}

std::optional<PartitionPage> read_partition(postgres::Session& session, const Options& options,
                                            const Samples& samples,
                                            const TopicPartition& partition) {
  const auto consumer = cli::require_consumer(session, options);
  for (auto& row :
       ledger::read_register(session, options.postgres.schema, consumer.id, partition.topic)) {
    if (row.partition != partition)
      continue;
    PartitionPage page;
    page.line.course = samples.course(partition);
    page.line.halt = halt_of(row, options);
    page.line.row = std::move(row);
    page.conditions = read_conditions(session, options, consumer.id);
    std::erase_if(page.conditions, [&](const auto& one) {
      return TopicPartition{one.condition.topic, one.condition.partition} != partition;
    });
    try {
      page.history = ledger::read_history(session, options.postgres.schema, consumer.id,
                                          partition.topic, partition.partition, 0, 20);
    } catch (const postgres::Error& error) {
      // A consumer's role need not read it, and the page is of use without.
      if (error.failure() != postgres::FailureClass::kProgram)
        throw;
      page.history_problem = error.what();
    }
    return page;
  }
  return std::nullopt;
}

ledger::DeadLetterFilter letter_filter(const Fields& query, bool by_key, std::string& problem) {
  ledger::DeadLetterFilter filter;
  filter.topic = field(query, "topic");
  filter.handler = field(query, "handler");
  filter.reason = field(query, "reason");
  filter.sqlstate = field(query, "sqlstate");
  const auto key_field = [&](const std::string& name) {
    auto key = field(query, name);
    if (!key.empty() && !by_key) {
      problem = "Only signed-in users can search by key. The key was omitted.";
      key.clear();
    }
    return key;
  };
  if (const auto key = key_field("idempotency_key"); !key.empty())
    filter.idempotency_key = message::make_idempotency_key(key).value_or("");
  if (const auto key = key_field("record_key"); !key.empty()) {
    const auto digest = message::sha256(key);
    filter.record_key_hash.emplace(digest.begin(), digest.end());
  }
  if (const auto text = field(query, "partition"); !text.empty()) {
    filter.partition = partition_field(query, "partition");
    if (!filter.partition) {
      problem = "Partition: \"" + text + "\" is not a partition number. It was omitted.";
    }
  }
  const auto status = field(query, "status");
  const auto known = cli::letter_statuses("all");
  if (status == "all" || std::ranges::find(known, status) != known.end())
    filter.statuses = cli::letter_statuses(status);
  return filter;
}

std::optional<ledger::LetterPlace> place_after(const Fields& query) {
  const auto partition = partition_field(query, "after_partition");
  const auto offset = number_field(query, "after_offset");
  const auto id = number_field(query, "after_id");
  if (!partition || !offset || !id)
    return std::nullopt;
  return ledger::LetterPlace{{field(query, "after_topic"), *partition}, *offset, *id};
}

LettersPage read_letters(postgres::Session& session, const Options& options, const Fields& query,
                         bool by_key) {
  LettersPage page;
  page.filters = query;
  std::erase_if(page.filters, [](const auto& f) { return f.first.starts_with("after_"); });
  const auto filter = letter_filter(query, by_key, page.problem);
  const auto after = place_after(query);
  page.first = !after;
  const auto consumer = cli::require_consumer(session, options);
  const ledger::DeadLetterView view(options.postgres.schema, consumer.id);
  // One more than is shown tells that there are more.
  page.letters = view.page(session, filter, kLettersOnPage + 1, after, false);
  if (static_cast<std::int64_t>(page.letters.size()) > kLettersOnPage) {
    page.letters.pop_back();
    page.next = ledger::place_in(page.letters.back());
  }
  view.name_left_parked(session, page.letters);
  return page;
}

std::optional<LetterPage> read_letter(postgres::Session& session, const Options& options,
                                      std::int64_t id, bool with_bytes) {
  const auto consumer = cli::require_consumer(session, options);
  const ledger::DeadLetterView view(options.postgres.schema, consumer.id);
  ledger::DeadLetterFilter filter;
  filter.ids = {id};
  filter.statuses = cli::letter_statuses("all");
  auto found = view.list(session, filter, 1, with_bytes);
  if (found.empty())
    return std::nullopt;
  view.name_left_parked(session, found);
  LetterPage page;
  page.letter = std::move(found.front());
  return page;
}

KeysPage read_keys(postgres::Session& session, const Options& options, const std::string& key) {
  KeysPage page;
  page.key = key;
  const auto stored = message::make_idempotency_key(key);
  if (!stored)
    return page;
  const auto& schema = options.postgres.schema;
  const auto consumer = cli::require_consumer(session, options);
  page.scopes = ledger::searched_scopes(session, schema, consumer.id, "");
  page.keys = ledger::find_key(session, schema, page.scopes, *stored, kResponseBytes);
  if (page.keys.empty())
    page.elsewhere =
        ledger::find_key_elsewhere(session, schema, page.scopes, *stored, kResponseBytes);
  page.halts = ledger::halts_with_key(session, schema, consumer.id, *stored);
  page.letters = ledger::letters_with_key(session, schema, consumer.id, *stored);
  if (static_cast<std::int64_t>(page.letters.size()) > kMostRows)
    page.letters.resize(kMostRows);
  if (options.calls.lease_store == LeaseStore::kPostgres) {
    ledger::LeaseFilter filter;
    filter.key = *stored;
    page.leases = ledger::LeaseView(schema, consumer.id).list(session, filter, kMostRows);
  }
  return page;
}

OutboxPage read_outbox(postgres::Session& session, const Options& options) {
  const ledger::OutboxView view(options.postgres.schema);
  OutboxPage page;
  page.status = view.look(session, options.outbox.alert_age);
  page.set_apart = view.set_apart(session, 0, false, kMostRows, false);
  return page;
}

LeasesPage read_leases(postgres::Session& session, const Options& options) {
  LeasesPage page;
  if (options.calls.lease_store != LeaseStore::kPostgres) {
    page.elsewhere = command_text(options.invocation, "calls list");
    return page;
  }
  const auto consumer = cli::require_consumer(session, options);
  const ledger::LeaseView view(options.postgres.schema, consumer.id);
  page.counts = view.count(session);
  page.resolve = command_text(options.invocation, "calls resolve");
  ledger::LeaseFilter unknown;
  unknown.unknown = true;
  page.leases = view.list(session, unknown, kMostRows);
  for (auto& lease : view.list(session, {}, kMostRows)) {
    if (static_cast<std::int64_t>(page.leases.size()) == kMostRows)
      break;
    if (lease.state != ledger::LeaseState::kUnknown)
      page.leases.push_back(std::move(lease));
  }
  page.losses = view.losses(session, {}, kMostRows);
  page.most = kMostRows;
  return page;
}

HistoryPage read_history(postgres::Session& session, const Options& options, std::int64_t before) {
  const auto consumer = cli::require_consumer(session, options);
  HistoryPage page;
  page.rows = ledger::read_history(session, options.postgres.schema, consumer.id, "", std::nullopt,
                                   before, kMostRows + 1);
  page.more = static_cast<std::int64_t>(page.rows.size()) > kMostRows;
  if (page.more)
    page.rows.pop_back();
  return page;
}

}  // namespace pawl::dashboard
