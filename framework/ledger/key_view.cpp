#include "ledger/key_view.hpp"

#include "ledger/rows.hpp"
#include "postgres/array_elements.hpp"

namespace pawl::ledger {
namespace {

constexpr const char* kScopes = R"sql(
  SELECT DISTINCT s.name,
         to_char(s.pruned_to AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"')
    FROM pawl.idempotency_scopes s
    LEFT JOIN pawl.scope_sources u USING (scope_id)
    LEFT JOIN pawl.consumer_topics t USING (source_id)
   WHERE CASE WHEN $2 = '' THEN t.consumer_id = $1::integer ELSE s.name = $2 END
   ORDER BY 1
)sql";

constexpr const char* kFind = R"sql(
  SELECT s.name, c.cluster || '/' || c.group_id, t.topic, k.partition, k.kafka_offset,
         to_char(k.created_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'),
         k.payload_hash, substring(k.response FOR $3::integer), coalesce(octet_length(k.response), 0)
    FROM pawl.idempotency_scopes s
    JOIN pawl.idempotency_keys k ON k.scope_id = s.scope_id AND k.key = $2
    LEFT JOIN pawl.consumer_topics t USING (source_id)
    LEFT JOIN pawl.consumers c USING (consumer_id)
   WHERE s.name = $1
)sql";

// By the index for each scope, whatever the statistics say of the keys.
constexpr const char* kFindElsewhere = R"sql(
  SELECT s.name, c.cluster || '/' || c.group_id, t.topic, k.partition, k.kafka_offset,
         to_char(k.created_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'),
         k.payload_hash, substring(k.response FOR $3::integer), coalesce(octet_length(k.response), 0)
    FROM pawl.idempotency_scopes s
   CROSS JOIN LATERAL (SELECT r.* FROM pawl.idempotency_keys r
                        WHERE r.scope_id = s.scope_id AND r.key = $2 OFFSET 0) k
    LEFT JOIN pawl.consumer_topics t USING (source_id)
    LEFT JOIN pawl.consumers c USING (consumer_id)
   WHERE s.name <> ALL ($1::text[])
   ORDER BY s.name
)sql";

constexpr const char* kLetters = R"sql(
  SELECT dead_letter_id FROM pawl.dead_letters
   WHERE consumer_id = $1::integer AND idempotency_key = $2
   ORDER BY dead_letter_id
)sql";

constexpr const char* kSize = R"sql(
  SELECT greatest(c.reltuples, 0)::bigint,
         pg_table_size(c.oid), pg_indexes_size(c.oid)
    FROM pg_class c WHERE c.oid = 'pawl.idempotency_keys'::regclass
)sql";

// From scope to scope by the primary key, however many keys each has.
constexpr const char* kMissingScopes = R"sql(
  WITH RECURSIVE used (scope_id) AS (
    SELECT min(k.scope_id) FROM pawl.idempotency_keys k
    UNION ALL
    SELECT (SELECT min(k.scope_id) FROM pawl.idempotency_keys k WHERE k.scope_id > u.scope_id)
      FROM used u
     WHERE u.scope_id IS NOT NULL
  )
  SELECT u.scope_id
    FROM used u
   WHERE u.scope_id IS NOT NULL
     AND NOT EXISTS (SELECT FROM pawl.idempotency_scopes s WHERE s.scope_id = u.scope_id)
   ORDER BY u.scope_id
)sql";

void add_keys(std::vector<KeyRow>& keys, const PGresult* rows) {
  for (int row = 0; row < PQntuples(rows); ++row) {
    keys.push_back({text(rows, row, 0), text(rows, row, 1), text(rows, row, 2),
                    static_cast<std::int32_t>(integer(rows, row, 3)), integer(rows, row, 4),
                    text(rows, row, 5), integer(rows, row, 6), bytes(rows, row, 7),
                    static_cast<std::size_t>(integer(rows, row, 8))});
  }
}

// Few partitions are halted.
constexpr const char* kHalts = R"sql(
  SELECT topic, partition, halt_offset
    FROM pawl.processed_kafka_offsets
   WHERE consumer_id = $1::integer AND state = 'halted' AND halt_offset IS NOT NULL
     AND halt_parameters ->> 'idempotency_key' = $2
   ORDER BY topic, partition
)sql";

/// Rows of a query whose $1 is the consumer and whose $2 is `text`.
postgres::Result query(postgres::Session& session, const std::string& schema, const char* sql,
                       ConsumerId consumer, const std::string& text) {
  postgres::Parameters parameters;
  parameters.add_integer(static_cast<std::int64_t>(consumer));
  parameters.add_text(text);
  return session.exec({"", in_schema(sql, schema)}, parameters);
}

}  // namespace

std::vector<SearchedScope> searched_scopes(postgres::Session& session, const std::string& schema,
                                           ConsumerId consumer, const std::string& name) {
  const auto found = query(session, schema, kScopes, consumer, name);
  std::vector<SearchedScope> scopes;
  for (int row = 0; row < PQntuples(found.get()); ++row)
    scopes.push_back({text(found.get(), row, 0), text(found.get(), row, 1)});
  return scopes;
}

std::vector<KeyRow> find_key(postgres::Session& session, const std::string& schema,
                             const std::vector<SearchedScope>& scopes, const std::string& key,
                             std::size_t most) {
  const postgres::Statement find{"", in_schema(kFind, schema)};
  std::vector<KeyRow> keys;
  for (const auto& scope : scopes) {
    postgres::Parameters parameters;
    parameters.add_text(scope.name);
    parameters.add_text(key);
    parameters.add_integer(static_cast<std::int64_t>(most));
    add_keys(keys, session.exec(find, parameters).get());
  }
  return keys;
}

std::vector<KeyRow> find_key_elsewhere(postgres::Session& session, const std::string& schema,
                                       const std::vector<SearchedScope>& scopes,
                                       const std::string& key, std::size_t most) {
  postgres::ArrayElements names;
  for (const auto& scope : scopes)
    names.add_text(scope.name);
  postgres::Parameters parameters;
  parameters.add_text(names.array());
  parameters.add_text(key);
  parameters.add_integer(static_cast<std::int64_t>(most));
  std::vector<KeyRow> keys;
  add_keys(keys, session.exec({"", in_schema(kFindElsewhere, schema)}, parameters).get());
  return keys;
}

std::vector<std::int64_t> letters_with_key(postgres::Session& session, const std::string& schema,
                                           ConsumerId consumer, const std::string& key) {
  const auto found = query(session, schema, kLetters, consumer, key);
  std::vector<std::int64_t> letters;
  for (int row = 0; row < PQntuples(found.get()); ++row)
    letters.push_back(integer(found.get(), row, 0));
  return letters;
}

std::vector<HaltedAt> halts_with_key(postgres::Session& session, const std::string& schema,
                                     ConsumerId consumer, const std::string& key) {
  const auto found = query(session, schema, kHalts, consumer, key);
  std::vector<HaltedAt> halts;
  for (int row = 0; row < PQntuples(found.get()); ++row) {
    halts.push_back(
        {{text(found.get(), row, 0), static_cast<std::int32_t>(integer(found.get(), row, 1))},
         integer(found.get(), row, 2)});
  }
  return halts;
}

std::vector<std::int64_t> missing_scopes(postgres::Session& session, const std::string& schema) {
  const auto found = session.exec({"", in_schema(kMissingScopes, schema)});
  std::vector<std::int64_t> scopes;
  for (int row = 0; row < PQntuples(found.get()); ++row)
    scopes.push_back(integer(found.get(), row, 0));
  return scopes;
}

KeyTableSize key_table_size(postgres::Session& session, const std::string& schema) {
  const auto found = session.exec({"", in_schema(kSize, schema)});
  return {static_cast<double>(integer(found.get(), 0, 0)), integer(found.get(), 0, 1),
          integer(found.get(), 0, 2)};
}

}  // namespace pawl::ledger
