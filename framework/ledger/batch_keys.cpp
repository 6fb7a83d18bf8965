#include "ledger/batch_keys.hpp"

#include "ledger/rows.hpp"
#include "ledger/verified.hpp"
#include "message/hexadecimal.hpp"

namespace pawl::ledger {
namespace {

constexpr const char* kClaim = R"sql(
  INSERT INTO pawl.idempotency_keys (scope_id, key, payload_hash, source_id, partition,
        kafka_offset)
  SELECT {scope}, i.key, i.payload_hash, $2::integer, $3::integer, i.kafka_offset
    FROM unnest($4::text[], $5::bigint[], $6::bigint[]) AS i (key, payload_hash, kafka_offset)
   ORDER BY i.key COLLATE "C"
  ON CONFLICT (scope_id, key) DO NOTHING
  RETURNING kafka_offset, pg_current_xact_id()
)sql";

constexpr const char* kLookup = R"sql(
  SELECT place, payload_hash, response, created_ms
    FROM pawl.stored_keys({scope}, $2::text[], $3::boolean)
)sql";

// Their sizes are known to be small enough.
constexpr const char* kRespond = R"sql(
  SELECT pawl.store_responses(2147483647, $1::integer, $2::text[],
                              (SELECT array_agg(n)
                                 FROM generate_series(1::bigint, cardinality($2::text[])) AS n),
                              $3::bytea[])
)sql";

}  // namespace

void KeysToClaim::clear() {
  keys.clear();
  payload_hashes.clear();
  offsets.clear();
}

void KeysToClaim::add(const std::string& key, std::int64_t payload_hash, std::int64_t offset) {
  keys.add_text(key);
  payload_hashes.add_integer(payload_hash);
  offsets.add_integer(offset);
}

void KeyResponses::add(const std::string& key, std::string_view response) {
  keys.add_text(key);
  // PostgreSQL's form of bytea.
  responses.add_text("\\x" + message::hexadecimal(response));
}

BatchKeys::BatchKeys(const std::string& schema)
    : claim_(
          verifying("pawl_claim_batch", kClaim, "{scope}", verified_scope(1, 7, schema), schema)),
      lookup_(with_scope("pawl_lookup_batch", kLookup, 1, 4, schema)),
      respond_{"pawl_respond_batch", in_schema(kRespond, schema)} {}

void BatchKeys::claim(postgres::Request& request, const Scope& scope, SourceId source,
                      std::int32_t partition, const KeysToClaim& keys) const {
  auto& parameters = request.to(claim_);
  parameters.add_integer(static_cast<std::int64_t>(scope.id));
  parameters.add_integer(static_cast<std::int64_t>(source));
  parameters.add_integer(partition);
  parameters.add_text(keys.keys.array());
  parameters.add_text(keys.payload_hashes.array());
  parameters.add_text(keys.offsets.array());
  parameters.add_text(scope.name);
}

ClaimedKeys BatchKeys::claimed(const PGresult* rows) {
  ClaimedKeys claimed;
  const int count = PQntuples(rows);
  claimed.offsets.reserve(static_cast<std::size_t>(count));
  for (int row = 0; row < count; ++row)
    claimed.offsets.push_back(integer(rows, row, 0));
  if (count > 0)
    claimed.transaction = text(rows, 0, 1);
  return claimed;
}

void BatchKeys::look_up(postgres::Request& request, const Scope& scope,
                        const postgres::ArrayElements& keys, bool with_responses) const {
  auto& parameters = request.to(lookup_);
  parameters.add_integer(static_cast<std::int64_t>(scope.id));
  parameters.add_text(keys.array());
  parameters.add_text(with_responses ? "true" : "false");
  parameters.add_text(scope.name);
}

std::vector<EarlierKey> BatchKeys::found(const PGresult* rows) {
  std::vector<EarlierKey> found;
  const int count = PQntuples(rows);
  found.reserve(static_cast<std::size_t>(count));
  for (int row = 0; row < count; ++row) {
    found.push_back({static_cast<std::size_t>(integer(rows, row, 0)), integer(rows, row, 1),
                     bytes(rows, row, 2), instant(rows, row, 3)});
  }
  return found;
}

postgres::Request BatchKeys::store_responses(ScopeId scope, const KeyResponses& responses) const {
  postgres::Request request;
  auto& parameters = request.to(respond_);
  parameters.add_integer(static_cast<std::int64_t>(scope));
  parameters.add_text(responses.keys.array());
  parameters.add_text(responses.responses.array());
  return request;
}

}  // namespace pawl::ledger
