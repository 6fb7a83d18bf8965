#include "retention/store/retention.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "ledger/rows.hpp"
#include "message/rfc3339.hpp"
#include "postgres/transaction.hpp"

namespace pawl::ledger {
namespace {

constexpr const char* kNow = "SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint";

constexpr const char* kFindUse = R"sql(
  SELECT s.scope_id IS NOT NULL, t.source_id IS NOT NULL, coalesce(u.retention_ms = $4::bigint, false)
    FROM (SELECT) one
    LEFT JOIN pawl.idempotency_scopes s ON s.name = $1
    LEFT JOIN pawl.consumer_topics t ON t.consumer_id = $2::integer AND t.topic = $3
    LEFT JOIN pawl.scope_sources u ON u.scope_id = s.scope_id AND u.source_id = t.source_id
)sql";

constexpr const char* kInsertUse = R"sql(
  INSERT INTO pawl.scope_sources (scope_id, source_id, retention_ms)
  SELECT s.scope_id, t.source_id, $4::bigint
    FROM pawl.idempotency_scopes s CROSS JOIN pawl.consumer_topics t
   WHERE s.name = $1 AND t.consumer_id = $2::integer AND t.topic = $3
  ON CONFLICT (scope_id, source_id) DO UPDATE SET retention_ms = excluded.retention_ms
)sql";

constexpr const char* kScopes = R"sql(
  SELECT DISTINCT s.scope_id, s.name, (extract(epoch FROM s.pruned_to) * 1000)::bigint,
         (extract(epoch FROM s.swept_to) * 1000)::bigint
    FROM pawl.idempotency_scopes s
    JOIN pawl.scope_sources u USING (scope_id)
    JOIN pawl.consumer_topics t USING (source_id)
   WHERE t.consumer_id = $1::integer
   ORDER BY s.name
)sql";

constexpr const char* kUsers = R"sql(
  SELECT u.scope_id, t.consumer_id = $1::integer, t.topic, u.retention_ms
    FROM pawl.scope_sources u
    JOIN pawl.consumer_topics t USING (source_id)
)sql";

// Topics of other consumers count as well, where we can ask their Kafka cluster.
constexpr const char* kSources = R"sql(
  SELECT DISTINCT t.source_id, t.topic
    FROM pawl.scope_sources u
    JOIN pawl.consumer_topics t USING (source_id)
    JOIN pawl.consumers c USING (consumer_id)
   WHERE u.scope_id IN (SELECT u2.scope_id FROM pawl.scope_sources u2
                          JOIN pawl.consumer_topics t2 USING (source_id)
                         WHERE t2.consumer_id = $1::integer)
     AND c.kafka_cluster_id = (SELECT c2.kafka_cluster_id FROM pawl.consumers c2
                                WHERE c2.consumer_id = $1::integer)
   ORDER BY t.source_id
)sql";

constexpr const char* kCutoff = R"sql(
  SELECT (extract(epoch FROM cutoff) * 1000)::bigint, held_by, unusable_time
    FROM pawl.prune_cutoff($1::integer, $2::bigint, to_timestamp($3::bigint / 1000.0),
                           $4::boolean, $5::integer[], $6::integer[], $7::bigint[], $8::text[])
)sql";

constexpr const char* kBlocks =
    "SELECT pg_relation_size('pawl.idempotency_keys') / current_setting('block_size')::bigint";

// A key that is old enough. $1 scopes, $2 their cutoffs.
constexpr const char* kOld =
    "k.created_at < ($2::timestamptz[])[array_position($1::integer[], k.scope_id)]";

// A key that no dead letter needs. Only one index has this order, so each key is looked up in it,
// whatever the statistics say of the dead letters.
constexpr const char* kNotNeeded =
    "NOT EXISTS (SELECT FROM pawl.dead_letters d"
    "             WHERE d.idempotency_key >= {key} AND d.idempotency_key <= {key}"
    "               AND d.status IN ('dead', 'parked')"
    "             ORDER BY d.idempotency_key OFFSET 0)";

// A range of blocks needs no index (TID range scan, PostgreSQL 14). The rows are found before the
// first is locked, so that a claim waits for no more than the removal of $5 rows. Nobody else locks
// them but a renewal, so there is nothing to skip. A key that was renewed since it was found is
// looked at again once its lock is free, and stays: hence the cutoff in the DELETE.
constexpr const char* kSweep = R"sql(
  WITH chosen AS MATERIALIZED (
         SELECT k.ctid AS place FROM pawl.idempotency_keys k
          WHERE k.ctid >= $3::tid AND k.ctid < $4::tid AND {old} AND {not_needed}
          LIMIT $5::bigint),
       gone AS (
         DELETE FROM pawl.idempotency_keys k WHERE k.ctid = ANY (ARRAY(SELECT place FROM chosen))
            AND {old}
         RETURNING 1)
  SELECT (SELECT count(*) FROM gone),
         (SELECT max((place::text::point)[0])::bigint FROM chosen)
)sql";

// Of all keys at once, or of those in a sample of blocks: joined.
constexpr const char* kCountKeys = R"sql(
  SELECT count(*) FROM pawl.idempotency_keys k {sample}
   WHERE {old}
     AND NOT EXISTS (SELECT FROM pawl.dead_letters d
                      WHERE d.idempotency_key = k.key AND d.status IN ('dead', 'parked'))
)sql";

// What is left of calls goes with the keys: it is there for those who may still come.
constexpr const char* kFinishScope = R"sql(
  WITH calls AS (
         DELETE FROM pawl.leases l
          WHERE l.scope_id = $1::integer AND l.changed_at < to_timestamp($2::bigint / 1000.0)
            AND (l.owner IS NULL OR l.lease_until < to_timestamp($2::bigint / 1000.0))
            AND {not_needed})
  UPDATE pawl.idempotency_scopes SET swept_to = to_timestamp($2::bigint / 1000.0)
   WHERE scope_id = $1::integer
     AND (swept_to IS NULL OR swept_to < to_timestamp($2::bigint / 1000.0))
)sql";

constexpr const char* kFinish = R"sql(
  UPDATE pawl.retention_state
     SET swept_at = clock_timestamp(), removed_keys = removed_keys + $2::bigint
   WHERE consumer_id = $1::integer
)sql";

constexpr const char* kScopePrunedTo = R"sql(
  SELECT (extract(epoch FROM pruned_to) * 1000)::bigint FROM pawl.idempotency_scopes WHERE name = $1
)sql";

constexpr const char* kPrunedTo = R"sql(
  SELECT (extract(epoch FROM max(s.pruned_to)) * 1000)::bigint
    FROM pawl.idempotency_scopes s
    JOIN pawl.scope_sources u USING (scope_id)
    JOIN pawl.consumer_topics t USING (source_id)
   WHERE t.consumer_id = $1::integer AND t.topic = $2
)sql";

/// `key` is the column with the idempotency key, `sample` a TABLESAMPLE of the table of keys.
std::string filled(const char* text, const char* key, const std::string& sample = "") {
  return fmt::format(
      fmt::runtime(text), fmt::arg("old", kOld), fmt::arg("sample", sample),
      fmt::arg("not_needed", fmt::format(fmt::runtime(kNotNeeded), fmt::arg("key", key))));
}

std::int64_t to_ms(Instant time) {
  return time.time_since_epoch().count();
}

/// A PostgreSQL array of what needs no quotes.
template <typename Items, typename Value>
std::string array(const Items& items, Value value) {
  std::string text;
  for (const auto& item : items)
    text += fmt::format("{}{}", text.empty() ? "{" : ",", value(item));
  return text.empty() ? "{}" : text + "}";
}

void add_cutoffs(postgres::Parameters& parameters, const std::map<ScopeId, Instant>& cutoffs) {
  parameters.add_text(
      array(cutoffs, [](const auto& item) { return static_cast<std::int32_t>(item.first); }));
  parameters.add_text(
      array(cutoffs, [](const auto& item) { return message::rfc3339_milliseconds(item.second); }));
}

}  // namespace

Retention::Retention(std::string schema, ConsumerId consumer)
    : schema_(std::move(schema)),
      consumer_(consumer),
      lease_("retention", "pawl.retention_state", Lease::Durability::kRelaxed, schema_, consumer),
      sweep_{"pawl_retention_sweep", in_schema(filled(kSweep, "k.key"), schema_)},
      cutoff_{"pawl_retention_cutoff", in_schema(kCutoff, schema_)},
      finish_scope_{"pawl_retention_finish_scope",
                    in_schema(filled(kFinishScope, "l.key"), schema_)},
      finish_{"pawl_retention_finish", in_schema(kFinish, schema_)} {}

Instant Retention::now(postgres::Session& session) const {
  const auto found = session.exec({"", kNow});
  return Instant{std::chrono::milliseconds{integer(found.get(), 0, 0)}};
}

bool Retention::register_use(postgres::Session& session, const std::string& scope,
                             const std::string& topic, std::chrono::milliseconds retention) const {
  postgres::Parameters parameters;
  parameters.add_text(scope);
  parameters.add_integer(static_cast<std::int64_t>(consumer_));
  parameters.add_text(topic);
  parameters.add_integer(retention.count());
  const auto found = session.exec({"", in_schema(kFindUse, schema_)}, parameters);
  if (!boolean(found.get(), 0, 0))
    return true;
  if (!boolean(found.get(), 0, 1))
    return false;
  if (!boolean(found.get(), 0, 2)) {
    const postgres::Statement insert{"", in_schema(kInsertUse, schema_)};
    postgres::run_transaction(session, {{&insert, parameters}});
  }
  return true;
}

std::vector<PrunableScope> Retention::scopes(postgres::Session& session) const {
  postgres::Parameters parameters;
  parameters.add_integer(static_cast<std::int64_t>(consumer_));
  const auto found = session.exec({"", in_schema(kScopes, schema_)}, parameters);
  const auto* rows = found.get();
  std::vector<PrunableScope> scopes;
  for (int row = 0; row < PQntuples(rows); ++row) {
    scopes.push_back({ScopeId{static_cast<std::int32_t>(integer(rows, row, 0))}, text(rows, row, 1),
                      optional_instant(rows, row, 2), optional_instant(rows, row, 3),
                      std::vector<ScopeUser>{}});
  }
  const auto users = session.exec({"", in_schema(kUsers, schema_)}, parameters);
  for (int row = 0; row < PQntuples(users.get()); ++row) {
    const ScopeId id{static_cast<std::int32_t>(integer(users.get(), row, 0))};
    const auto scope = std::ranges::find(scopes, id, &PrunableScope::id);
    if (scope == scopes.end())
      continue;
    auto& user = scope->users.emplace_back();
    user.own = boolean(users.get(), row, 1);
    user.topic = text(users.get(), row, 2);
    if (const auto ms = optional_integer(users.get(), row, 3))
      user.retention = std::chrono::milliseconds{*ms};
  }
  return scopes;
}

std::vector<ScopeSource> Retention::sources(postgres::Session& session) const {
  postgres::Parameters parameters;
  parameters.add_integer(static_cast<std::int64_t>(consumer_));
  const auto found = session.exec({"", in_schema(kSources, schema_)}, parameters);
  const auto* rows = found.get();
  std::vector<ScopeSource> sources;
  for (int row = 0; row < PQntuples(rows); ++row) {
    sources.push_back(
        {SourceId{static_cast<std::int32_t>(integer(rows, row, 0))}, text(rows, row, 1)});
  }
  return sources;
}

Cutoff Retention::cutoff(postgres::Session& session, ScopeId scope,
                         std::chrono::milliseconds retention, Instant asked_at,
                         const std::vector<KnownEnd>& ends, bool store) const {
  postgres::Parameters parameters;
  parameters.add_integer(static_cast<std::int64_t>(scope));
  parameters.add_integer(retention.count());
  parameters.add_integer(to_ms(asked_at));
  parameters.add_text(store ? "true" : "false");
  parameters.add_text(
      array(ends, [](const auto& end) { return static_cast<std::int32_t>(end.source); }));
  parameters.add_text(array(ends, [](const auto& end) { return end.partition; }));
  parameters.add_text(array(ends, [](const auto& end) { return end.end; }));
  // Base64: it needs quotes only where it is empty.
  parameters.add_text(array(ends, [](const auto& end) { return '"' + end.topic_id + '"'; }));
  const auto answers = postgres::run_transaction(session, {{&cutoff_, std::move(parameters)}});
  const auto* rows = answers.front().get();
  return {optional_instant(rows, 0, 0), text(rows, 0, 1), text(rows, 0, 2)};
}

std::int64_t Retention::blocks(postgres::Session& session) const {
  const auto found = session.exec({"", in_schema(kBlocks, schema_)});
  return integer(found.get(), 0, 0);
}

Swept Retention::sweep(postgres::Session& session, const BlockRange& blocks,
                       const std::map<ScopeId, Instant>& cutoffs, std::int64_t most) const {
  postgres::Parameters parameters;
  add_cutoffs(parameters, cutoffs);
  parameters.add_text(fmt::format("({},0)", blocks.begin));
  parameters.add_text(fmt::format("({},0)", blocks.end));
  parameters.add_integer(most);
  const auto answers =
      postgres::run_relaxed_transaction(session, {{&sweep_, std::move(parameters)}});
  const auto* rows = answers.front().get();
  const auto keys = integer(rows, 0, 0);
  // A full portion may have left some in the block that it ended in.
  return {keys, keys < most ? blocks.end : integer(rows, 0, 1)};
}

void Retention::finish_sweep(postgres::Session& session, const std::map<ScopeId, Instant>& cutoffs,
                             std::int64_t removed) const {
  std::vector<postgres::Request> steps;
  for (const auto& [scope, cutoff] : cutoffs) {
    auto& step = steps.emplace_back(postgres::Request{&finish_scope_, {}});
    step.parameters.add_integer(static_cast<std::int64_t>(scope));
    step.parameters.add_integer(to_ms(cutoff));
  }
  auto& last = steps.emplace_back(postgres::Request{&finish_, {}});
  last.parameters.add_integer(static_cast<std::int64_t>(consumer_));
  last.parameters.add_integer(removed);
  postgres::run_transaction(session, std::move(steps));
}

KeyCount Retention::count_keys(postgres::Session& session,
                               const std::map<ScopeId, Instant>& cutoffs,
                               std::int64_t most_blocks) const {
  const auto all = blocks(session);
  const bool estimated = all > most_blocks;
  const auto part =
      static_cast<double>(most_blocks) / static_cast<double>(std::max(all, most_blocks));
  const auto sample =
      estimated ? fmt::format("TABLESAMPLE SYSTEM ({:.6f}) REPEATABLE (0)", 100 * part) : "";
  postgres::Parameters parameters;
  add_cutoffs(parameters, cutoffs);
  const auto found =
      session.exec({"", in_schema(filled(kCountKeys, "k.key", sample), schema_)}, parameters);
  const auto counted = integer(found.get(), 0, 0);
  if (!estimated)
    return {counted, false};
  return {static_cast<std::int64_t>(static_cast<double>(counted) / part), true};
}

std::optional<Instant> pruned_to(postgres::Session& session, const std::string& schema,
                                 const std::string& scope) {
  postgres::Parameters parameters;
  parameters.add_text(scope);
  const auto found = session.exec({"", in_schema(kScopePrunedTo, schema)}, parameters);
  return PQntuples(found.get()) == 0 ? std::nullopt : optional_instant(found.get(), 0, 0);
}

std::optional<Instant> pruned_to(postgres::Session& session, const std::string& schema,
                                 ConsumerId consumer, const std::string& topic) {
  postgres::Parameters parameters;
  parameters.add_integer(static_cast<std::int64_t>(consumer));
  parameters.add_text(topic);
  const auto found = session.exec({"", in_schema(kPrunedTo, schema)}, parameters);
  return optional_instant(found.get(), 0, 0);
}

}  // namespace pawl::ledger
