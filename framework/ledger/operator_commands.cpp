#include "ledger/operator_commands.hpp"

#include "ledger/advance_text.hpp"
#include "ledger/partition_parameters.hpp"
#include "ledger/rows.hpp"
#include "postgres/transaction.hpp"

namespace pawl::ledger {
namespace {

constexpr const char* kChange =
    "SELECT pawl.operator_change($1::integer, $2, $3::integer, $4::bigint, $5, $6, $7)";

// Nothing where the state is another one than was seen; the lock holds it until the change.
constexpr const char* kChangeSeen = R"sql(
  WITH seen AS MATERIALIZED (
         SELECT FROM pawl.processed_kafka_offsets
          WHERE consumer_id = $1::integer AND topic = $2 AND partition = $3::integer
            AND state = $8 AND coalesce(halt_code, '') = $10
            AND coalesce(halt_cause, '') = $11 AND coalesce(operator_reason, '') = $12
            AND to_char(state_since AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"') = $9
            FOR UPDATE)
  SELECT pawl.operator_change($1::integer, $2, $3::integer, $4::bigint, $5, $6, $7) FROM seen
)sql";

// One statement, so that no consumer begins at another position in between.
constexpr const char* kBeginPartition = R"sql(
  WITH begun AS (
         INSERT INTO pawl.processed_kafka_offsets
                (consumer_id, topic, partition, last_processed_offset, base_offset)
         VALUES ($1::integer, $2, $3::integer, $4::bigint, $4::bigint + 1)
         ON CONFLICT DO NOTHING
         RETURNING consumer_id, topic, partition, base_offset)
  INSERT INTO pawl.offset_history (consumer_id, topic, partition, action, to_offset, reason)
   SELECT consumer_id, topic, partition, $5, base_offset, $6 FROM begun
)sql";

constexpr const char* kRequireUnpruned =
    "SELECT pawl.require_unpruned($1::integer, $2, $3::bigint)";

// What comes next at another position may be older than what was processed last: until it has
// processed a message there, the partition holds keys back (pawl.prune_cutoff).
constexpr const char* kForgetTime = R"sql(
  UPDATE pawl.processed_kafka_offsets SET last_timestamp_ms = NULL
   WHERE consumer_id = $1::integer AND topic = $2 AND partition = $3::integer
)sql";

}  // namespace

OperatorCommands::OperatorCommands(const std::string& schema, ConsumerId consumer)
    : consumer_(consumer),
      skipped_(schema, consumer),
      change_{"pawl_operator_change", in_schema(kChange, schema)},
      change_seen_{"pawl_operator_change_seen", in_schema(kChangeSeen, schema)},
      begin_partition_{"pawl_begin_partition", in_schema(kBeginPartition, schema)},
      require_unpruned_{"pawl_require_unpruned", in_schema(kRequireUnpruned, schema)},
      forget_time_{"pawl_forget_time", in_schema(kForgetTime, schema)},
      advance_{
          "pawl_operator_advance",
          advance_text(schema, {.outcome = Outcome::kSkipped, .claimed = false, .halted = true})} {}

std::optional<std::int64_t> OperatorCommands::change(postgres::Session& session,
                                                     const OperatorChange& change) const {
  auto parameters = partition_parameters(consumer_, change.partition);
  if (change.position) {
    parameters.add_integer(change.position->last());
  } else {
    parameters.add_null();
  }
  parameters.add_text_or_null(change.state ? to_string(*change.state) : "");
  parameters.add_text(change.action);
  parameters.add_text_or_null(change.reason);
  if (change.seen) {
    parameters.add_text(to_string(change.seen->state));
    parameters.add_text(change.seen->since);
    parameters.add_text(change.seen->halt_code);
    parameters.add_text(change.seen->halt_cause);
    parameters.add_text(change.seen->operator_reason);
  }
  std::vector<postgres::Request> steps;
  if (change.needs_keys) {
    // Locks the scopes, so before the register's row as pruning does it.
    postgres::Parameters seen;
    seen.add_integer(static_cast<std::int64_t>(consumer_));
    seen.add_text(change.partition.topic);
    if (change.pruned_to) {
      seen.add_integer(change.pruned_to->time_since_epoch().count());
    } else {
      seen.add_null();
    }
    steps.push_back({&require_unpruned_, std::move(seen)});
  }
  const auto changed = steps.size();
  steps.push_back({change.seen ? &change_seen_ : &change_, std::move(parameters)});
  if (change.position)
    steps.push_back({&forget_time_, partition_parameters(consumer_, change.partition)});
  const auto results = postgres::run_transaction(session, std::move(steps));
  const auto* before = results[changed].get();
  return PQntuples(before) == 0 ? std::nullopt : std::optional(integer(before, 0, 0));
}

bool OperatorCommands::begin_partition(postgres::Session& session,
                                       const OperatorChange& change) const {
  auto parameters = partition_parameters(consumer_, change.partition);
  parameters.add_integer(change.position.value().last());
  parameters.add_text(change.action);
  parameters.add_text_or_null(change.reason);
  const auto results =
      postgres::run_transaction(session, {{&begin_partition_, std::move(parameters)}});
  return postgres::affected_rows(results.front().get()) == 1;
}

void OperatorCommands::skip(postgres::Session& session, const OperatorSkip& skip,
                            const Message& message) const {
  // The owner's own compare-and-set, made with the epoch that the operator has seen: it raises when
  // anybody has moved or acquired the partition since.
  auto advance = partition_parameters(consumer_, skip.partition);
  advance.add_integer(static_cast<std::int64_t>(skip.epoch));
  advance.add_integer(skip.stored.last());
  advance.add_integer(message.offset());
  advance.add_null();
  advance.add_null();
  add_timestamp(advance, message.timestamp());
  // Fences the owner, which has this message in hand or waits before it.
  auto change = partition_parameters(consumer_, skip.partition);
  change.add_null();
  change.add_null();
  change.add_text("skip");
  change.add_text_or_null(skip.reason);
  postgres::run_transaction(session,
                            {{&advance_, std::move(advance)},
                             skipped_.record(message, skip.reason, !skip.unread, skip.halt),
                             {&change_, std::move(change)}});
}

}  // namespace pawl::ledger
