#include "ledger/register_view.hpp"

#include "ledger/rows.hpp"

namespace pawl::ledger {
namespace {

constexpr const char* kFindConsumer =
    "SELECT consumer_id, kafka_cluster_id FROM pawl.consumers WHERE cluster = $1 AND group_id = $2";

// Whose sessions a role may not see in full have no backend_start for it.
constexpr const char* kReadRegister = R"sql(
  SELECT r.topic, r.partition, last_processed_offset, owner_epoch, owner, released,
         state, operator_reason,
         to_char(state_since AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"'),
         to_char(updated_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"'),
         base_offset, applied_count, duplicate_count, skipped_count, unchecked_count,
         dead_count, parked_count,
         to_char(acquired_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"'),
         owner_pid IS NOT NULL AND NOT EXISTS (
           SELECT FROM pg_stat_activity a
            WHERE a.pid = owner_pid AND coalesce(a.backend_start = owner_backend_start, true)),
         CASE WHEN attempts_offset > last_processed_offset THEN r.attempts ELSE 0 END,
         CASE WHEN attempts_offset > last_processed_offset AND r.attempts > 0
              THEN attempts_offset END,
         ahead.finished, ahead.up_to, ahead.trying, ahead.attempts,
         s.kafka_offset, s.crashes, s.marked_by IS NOT NULL,
         floor(extract(epoch FROM clock_timestamp() - updated_at) * 1000)::bigint,
         to_char(ahead.since AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"'), r.topic_id,
         ahead.trying_offset,
         halt_kind, halt_code, halt_offset, halt_handler, halt_cause, halt_parameters
    FROM pawl.processed_kafka_offsets r
   CROSS JOIN LATERAL (
         SELECT count(a.outcome) AS finished,
                coalesce(max(a.kafka_offset) FILTER (WHERE a.outcome IS NOT NULL), -1) AS up_to,
                count(*) FILTER (WHERE a.outcome IS NULL) AS trying,
                coalesce(max(a.attempts) FILTER (WHERE a.outcome IS NULL), 0) AS attempts,
                min(a.changed_at) FILTER (WHERE a.outcome IS NOT NULL) AS since,
                (array_agg(a.kafka_offset ORDER BY a.attempts DESC, a.kafka_offset)
                   FILTER (WHERE a.outcome IS NULL))[1] AS trying_offset
           FROM pawl.out_of_order_completions a JOIN pawl.partition_fences f USING (fence_id)
          WHERE f.consumer_id = r.consumer_id AND f.topic = r.topic AND f.partition = r.partition
            AND a.kafka_offset > r.last_processed_offset) ahead
    LEFT JOIN pawl.suspects s
      ON (s.consumer_id, s.topic, s.partition) = (r.consumer_id, r.topic, r.partition)
         AND s.kafka_offset > r.last_processed_offset
   WHERE r.consumer_id = $1::integer AND ($2 = '' OR r.topic = $2)
   ORDER BY r.topic, r.partition
)sql";

constexpr const char* kDatabaseId = "SELECT database_id FROM pawl.database_identity";

constexpr const char* kSchemaOwner =
    "SELECT pg_get_userbyid(nspowner) FROM pg_namespace WHERE nspname = $1";

// What a consumer does with the tables (pawl migrate grants prints the same as GRANTs).
// $2 consumes, $3 relays the outbox, $4 looks how long its messages wait.
constexpr const char* kMissingRights = R"sql(
  SELECT format('%s on pawl.%s', needed.privilege, needed.name)
    FROM (VALUES
            ('schema_migrations', 'SELECT'), ('database_identity', 'SELECT'),
            ('consumers', 'SELECT'), ('consumers', 'INSERT'),
            ('consumer_topics', 'SELECT'), ('consumer_topics', 'INSERT'),
            ('processed_kafka_offsets', 'SELECT'), ('processed_kafka_offsets', 'INSERT'),
            ('processed_kafka_offsets', 'UPDATE'),
            ('offset_history', 'INSERT'),
            ('skipped_messages', 'SELECT'), ('skipped_messages', 'INSERT'),
            ('skipped_messages', 'DELETE'),
            ('dead_letters', 'SELECT'), ('dead_letters', 'INSERT'), ('dead_letters', 'UPDATE'),
            ('dead_letters', 'DELETE'),
            ('parked_keys', 'SELECT'), ('parked_keys', 'INSERT'), ('parked_keys', 'UPDATE'),
            ('parked_keys', 'DELETE'),
            ('partition_fences', 'SELECT'), ('partition_fences', 'INSERT'),
            ('partition_fences', 'UPDATE'), ('out_of_order_completions', 'SELECT'),
            ('out_of_order_completions', 'INSERT'), ('out_of_order_completions', 'UPDATE'),
            ('out_of_order_completions', 'DELETE'),
            ('suspects', 'SELECT'), ('suspects', 'INSERT'), ('suspects', 'UPDATE'),
            ('suspects', 'DELETE'),
            ('first_fetches', 'SELECT'), ('first_fetches', 'INSERT'),
            ('first_fetches', 'UPDATE'), ('first_fetches', 'DELETE'),
            ('processes', 'SELECT'), ('processes', 'INSERT'), ('processes', 'UPDATE'),
            ('processes', 'DELETE'),
            ('process_conditions', 'SELECT'), ('process_conditions', 'INSERT'),
            ('process_conditions', 'UPDATE'), ('process_conditions', 'DELETE'),
            ('idempotency_scopes', 'SELECT'), ('idempotency_scopes', 'INSERT'),
            ('scope_sources', 'SELECT'), ('scope_sources', 'INSERT'),
            ('retention_state', 'SELECT'), ('retention_state', 'INSERT'),
            ('retention_state', 'UPDATE'),
            ('topic_patterns', 'SELECT'), ('topic_patterns', 'INSERT'),
            ('leases', 'SELECT'), ('leases', 'INSERT'), ('leases', 'UPDATE'),
            ('leases', 'DELETE'),
            ('lease_losses', 'SELECT'), ('lease_losses', 'INSERT'), ('lease_losses', 'DELETE'),
            ('dead_letter_feed', 'SELECT'), ('dead_letter_feed', 'INSERT'),
            ('dead_letter_feed', 'UPDATE'),
            ('outbox_settings', 'SELECT'), ('outbox_settings', 'UPDATE'),
            ('outbox_shards', 'SELECT'), ('outbox_shards', 'UPDATE'),
            ('outbox', 'SELECT'), ('outbox', 'INSERT'), ('outbox', 'DELETE'),
            ('outbox_failed', 'SELECT'), ('outbox_failed', 'INSERT'),
            ('outbox_failed', 'UPDATE'), ('outbox_failed', 'DELETE'),
            ('outbox_relays', 'SELECT'), ('outbox_relays', 'INSERT'),
            ('outbox_relays', 'UPDATE'), ('outbox_relays', 'DELETE'),
            ('outbox_watch', 'SELECT'), ('outbox_watch', 'UPDATE'),
            ('idempotency_keys', 'SELECT'), ('idempotency_keys', 'INSERT'),
            ('idempotency_keys', 'DELETE')
         ) AS needed (name, privilege)
    JOIN pg_class t ON t.relname = needed.name
    JOIN pg_namespace s ON s.oid = t.relnamespace AND s.nspname = $1
   WHERE NOT has_table_privilege(t.oid, needed.privilege)
     AND CASE WHEN needed.name IN ('schema_migrations', 'database_identity') THEN true
              WHEN needed.name = 'outbox_watch' THEN $4::boolean
              WHEN needed.name IN ('outbox', 'outbox_shards') AND needed.privilege = 'SELECT'
                THEN $3::boolean OR $4::boolean
              WHEN needed.name = 'outbox_failed' AND needed.privilege IN ('SELECT', 'DELETE')
                THEN $2::boolean OR $3::boolean
              WHEN needed.name = 'outbox_relays' AND needed.privilege = 'SELECT'
                THEN $2::boolean OR $3::boolean
              WHEN needed.name LIKE 'outbox%' THEN $3::boolean
              ELSE $2::boolean END
   UNION ALL
  SELECT format('UPDATE (%s) on pawl.%s', needed.attribute, needed.name)
    FROM (VALUES ('idempotency_keys', 'response'), ('idempotency_keys', 'created_at'),
                 ('scope_sources', 'retention_ms'), ('idempotency_scopes', 'pruned_to'),
                 ('idempotency_scopes', 'swept_to')) AS needed (name, attribute)
    JOIN pg_class t ON t.relname = needed.name
    JOIN pg_namespace s ON s.oid = t.relnamespace AND s.nspname = $1
    JOIN pg_attribute a ON a.attrelid = t.oid AND a.attname = needed.attribute
   WHERE $2::boolean AND NOT has_column_privilege(t.oid, a.attnum, 'UPDATE')
   UNION ALL
  SELECT DISTINCT format('EXECUTE on function pawl.%s', p.proname)
    FROM pg_proc p JOIN pg_namespace s ON s.oid = p.pronamespace AND s.nspname = $1
   WHERE NOT has_function_privilege(p.oid, 'EXECUTE')
     AND CASE WHEN p.proname = 'publish' THEN $2::boolean AND $3::boolean
              WHEN p.proname IN ('watch_outbox', 'outbox_oldest') THEN $3::boolean OR $4::boolean
              WHEN p.proname LIKE '%outbox%' AND p.proname <> 'outbox_headers' THEN $3::boolean
              ELSE $2::boolean END
   UNION ALL
  SELECT 'USAGE on schema ' || s.nspname
    FROM pg_namespace s
   WHERE s.nspname = $1 AND NOT has_schema_privilege(s.oid, 'USAGE')
)sql";

}  // namespace

std::optional<KnownConsumer> find_consumer(postgres::Session& session, const std::string& schema,
                                           const std::string& cluster, const std::string& group) {
  const postgres::Statement find{"", in_schema(kFindConsumer, schema)};
  postgres::Parameters parameters;
  parameters.add_text(cluster);
  parameters.add_text(group);
  const auto found = session.exec(find, parameters);
  if (PQntuples(found.get()) == 0)
    return std::nullopt;
  return KnownConsumer{ConsumerId{static_cast<std::int32_t>(integer(found.get(), 0, 0))},
                       text(found.get(), 0, 1)};
}

std::vector<RegisterRow> read_register(postgres::Session& session, const std::string& schema,
                                       ConsumerId consumer, const std::string& topic) {
  const postgres::Statement read{"", in_schema(kReadRegister, schema)};
  postgres::Parameters parameters;
  parameters.add_integer(static_cast<std::int64_t>(consumer));
  parameters.add_text(topic);
  const auto found = session.exec(read, parameters);
  const auto* rows = found.get();
  std::vector<RegisterRow> result;
  for (int i = 0; i < PQntuples(rows); ++i) {
    RegisterRow row;
    row.partition = {text(rows, i, 0), static_cast<std::int32_t>(integer(rows, i, 1))};
    row.stored = Position::behind(integer(rows, i, 2));
    row.epoch = OwnerEpoch{integer(rows, i, 3)};
    row.owner = text(rows, i, 4);
    row.released = boolean(rows, i, 5);
    row.state = parse_state(text(rows, i, 6));
    row.operator_reason = text(rows, i, 7);
    row.state_since = text(rows, i, 8);
    row.updated_at = text(rows, i, 9);
    row.base_offset = integer(rows, i, 10);
    row.applied = integer(rows, i, 11);
    row.duplicates = integer(rows, i, 12);
    row.skipped = integer(rows, i, 13);
    row.unchecked = integer(rows, i, 14);
    row.dead = integer(rows, i, 15);
    row.parked = integer(rows, i, 16);
    row.acquired_at = text(rows, i, 17);
    row.session_gone = boolean(rows, i, 18);
    row.attempts = integer(rows, i, 19);
    row.attempts_offset = optional_integer(rows, i, 20);
    row.ahead = {integer(rows, i, 21), integer(rows, i, 22), integer(rows, i, 23),
                 integer(rows, i, 24), text(rows, i, 29),    optional_integer(rows, i, 31)};
    if (const auto offset = optional_integer(rows, i, 25))
      row.suspect = SuspectView{*offset, integer(rows, i, 26), boolean(rows, i, 27)};
    row.since_update_ms = integer(rows, i, 28);
    row.topic_id = text(rows, i, 30);
    if (row.state == PartitionState::kHalted)
      row.halt = read_halt(rows, i, 32);
    result.push_back(std::move(row));
  }
  return result;
}

std::string database_id(postgres::Session& session, const std::string& schema) {
  const auto found = session.exec({"", in_schema(kDatabaseId, schema)});
  return PQntuples(found.get()) == 0 ? std::string{} : text(found.get(), 0, 0);
}

std::string schema_owner(postgres::Session& session, const std::string& schema) {
  postgres::Parameters parameters;
  parameters.add_text(schema);
  const auto found = session.exec({"", kSchemaOwner}, parameters);
  return PQntuples(found.get()) == 0 ? std::string{} : text(found.get(), 0, 0);
}

std::vector<std::string> missing_rights(postgres::Session& session, const std::string& schema,
                                        const RoleUse& use) {
  const postgres::Statement ask{"", in_schema(kMissingRights, schema)};
  postgres::Parameters parameters;
  parameters.add_text(schema);
  for (const bool used : {use.consumes, use.relays, use.watches})
    parameters.add_text(used ? "true" : "false");
  const auto found = session.exec(ask, parameters);
  std::vector<std::string> missing;
  for (int i = 0; i < PQntuples(found.get()); ++i)
    missing.push_back(text(found.get(), i, 0));
  return missing;
}

}  // namespace pawl::ledger
