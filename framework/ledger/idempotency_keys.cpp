#include "ledger/idempotency_keys.hpp"

#include "ledger/partition_parameters.hpp"
#include "ledger/rows.hpp"
#include "ledger/verified.hpp"
#include "postgres/transaction.hpp"

namespace pawl::ledger {
namespace {

// pawl_message.claimed tells pawl.publish for what it publishes, pawl_message.trace as part of
// which trace, until the transaction ends.
constexpr const char* kClaim = R"sql(
  INSERT INTO pawl.idempotency_keys (scope_id, key, payload_hash, source_id, partition,
        kafka_offset)
  VALUES ({scope}, $2, $3::bigint, $4::integer, $5::integer, $6::bigint)
  ON CONFLICT (scope_id, key) DO NOTHING
  RETURNING pg_current_xact_id(), set_config('pawl_message.claimed', scope_id || ':' || key, true),
            CASE WHEN $7::text IS NOT NULL THEN set_config('pawl_message.trace', $7, true) END
)sql";

// Claims nothing while the record key is parked; its row stays locked until the transaction ends.
constexpr const char* kClaimUnlessParked = R"sql(
  INSERT INTO pawl.idempotency_keys (scope_id, key, payload_hash, source_id, partition,
        kafka_offset)
  SELECT {scope}, $2, $3::bigint, $4::integer, $5::integer, $6::bigint
   WHERE NOT pawl.is_parked($9::integer, $10, $11::bytea)
  ON CONFLICT (scope_id, key) DO NOTHING
  RETURNING pg_current_xact_id(), set_config('pawl_message.claimed', scope_id || ':' || key, true),
            CASE WHEN $7::text IS NOT NULL THEN set_config('pawl_message.trace', $7, true) END
)sql";

// An update that cannot happen costs nothing where the key is new: no WITH around the INSERT, and
// no RETURNING. So pawl_message.claimed and .trace are set where the response stays NULL.
constexpr const char* kClaimOrRaise = R"sql(
  INSERT INTO pawl.idempotency_keys AS k (scope_id, key, payload_hash, source_id, partition,
        kafka_offset, response)
  VALUES ({scope}, $2, $3::bigint, $4::integer, $5::integer, $6::bigint,
          CASE WHEN set_config('pawl_message.claimed', $1::integer || ':' || $2, true) IS NULL THEN ''::bytea
               WHEN CASE WHEN $7::text IS NOT NULL THEN set_config('pawl_message.trace', $7, true) IS NULL END
               THEN ''::bytea END)
  ON CONFLICT (scope_id, key) DO UPDATE SET response = pawl.reject_claim()
)sql";

constexpr const char* kClaimOrRaiseUnlessParked = R"sql(
  INSERT INTO pawl.idempotency_keys AS k (scope_id, key, payload_hash, source_id, partition,
        kafka_offset, response)
  SELECT {scope}, $2, $3::bigint, $4::integer, $5::integer, $6::bigint,
         CASE WHEN pawl.is_parked($9::integer, $10, $11::bytea) THEN pawl.reject_claim()
              WHEN set_config('pawl_message.claimed', $1::integer || ':' || $2, true) IS NULL THEN ''::bytea
              WHEN CASE WHEN $7::text IS NOT NULL THEN set_config('pawl_message.trace', $7, true) IS NULL END
              THEN ''::bytea END
  ON CONFLICT (scope_id, key) DO UPDATE SET response = pawl.reject_claim()
)sql";

constexpr const char* kUnchecked = R"sql(
  SELECT pg_current_xact_id(), {session},
         CASE WHEN $1::text IS NOT NULL THEN set_config('pawl_message.trace', $1, true) END
)sql";

constexpr const char* kName = R"sql(
  SELECT pg_current_xact_id(),
         CASE WHEN $1::text IS NOT NULL THEN set_config('pawl_message.trace', $1, true) END
)sql";

constexpr const char* kLookup = R"sql(
  SELECT k.payload_hash, t.topic, k.partition, k.kafka_offset, k.response, pg_current_xact_id(),
         floor(extract(epoch FROM k.created_at) * 1000)::bigint
    FROM pawl.stored_key($1::integer, $2) k
    LEFT JOIN pawl.consumer_topics t USING (source_id)
)sql";

constexpr const char* kRenew = "SELECT pawl.renew_keys($1::integer, $2::text[])";

// Its size is known to be small enough.
constexpr const char* kRespond = R"sql(
  SELECT pawl.store_responses(2147483647, $1::integer, ARRAY[$2::text], ARRAY[1::bigint],
                              ARRAY[$3::bytea])
)sql";

constexpr const char* kInsertScope =
    "INSERT INTO pawl.idempotency_scopes (name) VALUES ($1) ON CONFLICT (name) DO NOTHING";

constexpr const char* kInsertUse = R"sql(
  INSERT INTO pawl.scope_sources AS u (scope_id, source_id, retention_ms)
  SELECT scope_id, $2::integer, $3::bigint FROM pawl.idempotency_scopes WHERE name = $1
  ON CONFLICT (scope_id, source_id) DO UPDATE
     SET retention_ms = pawl.longer_retention(u.retention_ms, excluded.retention_ms)
)sql";

constexpr const char* kFindScope = R"sql(
  SELECT s.scope_id FROM pawl.idempotency_scopes s JOIN pawl.scope_sources u USING (scope_id)
   WHERE s.name = $1 AND u.source_id = $2::integer
     AND u.retention_ms = pawl.longer_retention(u.retention_ms, $3::bigint)
)sql";

/// A claim, which verifies its scope and the session that it runs in.
postgres::Statement claim_statement(const char* name, std::string_view text,
                                    const std::string& schema) {
  return verifying(name, text, "{scope}", verified_scope(1, 8, schema), schema);
}

void fill(postgres::Parameters& parameters, const Claim& claim) {
  parameters.add_integer(static_cast<std::int64_t>(claim.scope.id));
  parameters.add_text(claim.key);
  parameters.add_integer(claim.payload_hash);
  parameters.add_integer(static_cast<std::int64_t>(claim.source));
  parameters.add_integer(claim.partition);
  parameters.add_integer(claim.offset);
  parameters.add_text_or_null(claim.trace);
  parameters.add_text(claim.scope.name);
  if (claim.unless_parked)
    add_record_key(parameters, *claim.unless_parked);
}

}  // namespace

IdempotencyKeys::IdempotencyKeys(const std::string& schema)
    : claim_(claim_statement("pawl_claim", kClaim, schema)),
      claim_unless_parked_(claim_statement("pawl_claim_unless_parked", kClaimUnlessParked, schema)),
      unchecked_(verifying("pawl_unchecked", kUnchecked, "{session}", {"0", "0"}, schema)),
      name_{"pawl_name_transaction", kName},
      claim_or_raise_(claim_statement("pawl_claim_or_raise", kClaimOrRaise, schema)),
      claim_or_raise_unless_parked_(
          claim_statement("pawl_claim_or_raise_unless_parked", kClaimOrRaiseUnlessParked, schema)),
      lookup_{"pawl_lookup_key", in_schema(kLookup, schema)},
      renew_{"pawl_renew_keys", in_schema(kRenew, schema)},
      respond_{"pawl_store_response", in_schema(kRespond, schema)},
      insert_scope_{"pawl_insert_scope", in_schema(kInsertScope, schema)},
      insert_use_{"pawl_insert_scope_source", in_schema(kInsertUse, schema)},
      find_scope_{"pawl_find_scope", in_schema(kFindScope, schema)} {}

void IdempotencyKeys::claim(postgres::Request& request, const Claim& claim) const {
  fill(request.to(claim.unless_parked ? claim_unless_parked_ : claim_), claim);
}

void IdempotencyKeys::claim_or_raise(postgres::Request& request, const Claim& claim) const {
  fill(request.to(claim.unless_parked ? claim_or_raise_unless_parked_ : claim_or_raise_), claim);
}

void IdempotencyKeys::name_transaction(postgres::Request& request, std::string_view trace) const {
  request.to(unchecked_).add_text_or_null(trace);
}

void IdempotencyKeys::name_open_transaction(postgres::Request& request,
                                            std::string_view trace) const {
  request.to(name_).add_text_or_null(trace);
}

std::optional<std::string> IdempotencyKeys::claimed_by(const PGresult* rows) {
  if (PQntuples(rows) == 0)
    return std::nullopt;
  return text(rows, 0, 0);
}

void IdempotencyKeys::look_up(postgres::Request& request, ScopeId scope,
                              const std::string& key) const {
  auto& parameters = request.to(lookup_);
  parameters.add_integer(static_cast<std::int64_t>(scope));
  parameters.add_text(key);
}

std::optional<StoredKey> IdempotencyKeys::read(const PGresult* rows) {
  if (PQntuples(rows) == 0)
    return std::nullopt;
  StoredKey stored;
  stored.payload_hash = integer(rows, 0, 0);
  stored.topic = text(rows, 0, 1);
  stored.partition = static_cast<std::int32_t>(integer(rows, 0, 2));
  stored.offset = integer(rows, 0, 3);
  stored.response = bytes(rows, 0, 4);
  stored.transaction = text(rows, 0, 5);
  stored.created = instant(rows, 0, 6);
  return stored;
}

void IdempotencyKeys::renew(postgres::Request& request, ScopeId scope,
                            const postgres::ArrayElements& keys) const {
  auto& parameters = request.to(renew_);
  parameters.add_integer(static_cast<std::int64_t>(scope));
  parameters.add_text(keys.array());
}

postgres::Request IdempotencyKeys::store_response(ScopeId scope, const std::string& key,
                                                  const std::string& response) const {
  postgres::Request request;
  auto& parameters = request.to(respond_);
  parameters.add_integer(static_cast<std::int64_t>(scope));
  parameters.add_text(key);
  parameters.add_bytes(response);
  return request;
}

ScopeId IdempotencyKeys::scope(postgres::Session& session, const std::string& name, SourceId source,
                               std::chrono::milliseconds retention) const {
  postgres::Parameters use;
  use.add_text(name);
  use.add_integer(static_cast<std::int64_t>(source));
  use.add_integer(retention.count());
  const auto find = [&]() -> std::optional<ScopeId> {
    auto parameters = use;
    const auto result = session.exec(find_scope_, parameters);
    if (PQntuples(result.get()) == 0)
      return std::nullopt;
    return ScopeId{static_cast<std::int32_t>(integer(result.get(), 0, 0))};
  };
  if (const auto known = find())
    return *known;
  postgres::Parameters parameters;
  parameters.add_text(name);
  postgres::run_transaction(session,
                            {{&insert_scope_, std::move(parameters)}, {&insert_use_, use}});
  const auto made = find();
  if (!made)
    throw std::logic_error("an idempotency scope is missing right after it was stored");
  return *made;
}

}  // namespace pawl::ledger
