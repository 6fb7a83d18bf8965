#include "ledger/dead_letter_changes.hpp"

#include "ledger/dead_letters.hpp"
#include "ledger/payload.hpp"
#include "ledger/rows.hpp"
#include "postgres/sqlstate.hpp"
#include "postgres/transaction.hpp"

namespace pawl::ledger {
namespace {

constexpr const char* kReplayed =
    "SELECT pawl.resolve_dead_letter($1::bigint, $2::xid8, 'replayed', $3)";

constexpr const char* kFailedAgain =
    "UPDATE pawl.dead_letters SET replays = replays + 1, error = $2"
    " WHERE dead_letter_id = $1::bigint AND status IN ('dead', 'parked')";

constexpr std::size_t kLongestError = 8192;

constexpr const char* kDiscard =
    "SELECT pawl.resolve_dead_letter($1::bigint, NULL, 'discarded', $2)";

constexpr const char* kImport =
    "INSERT INTO pawl.dead_letters"
    "  (consumer_id, topic, topic_id, partition, kafka_offset, leader_epoch, timestamp_ms, status,"
    "   reason, handler, idempotency_key, sqlstate, error, error_detail, attempts, record_key,"
    "   record_key_hash, record_value, value_bytes, headers, payload, died_at, replays)"
    " VALUES ($1::integer, $2, nullif($3, ''), $4::integer, $5::bigint, $6::integer, $7::bigint,"
    "         $8, $9, $10, $11, nullif($12, ''), $13, nullif($14, ''), $15::integer, $16::bytea,"
    "         $17::bytea, $18::bytea, $19::bigint, $20::jsonb, $21, $22::timestamptz, $23::integer)"
    " ON CONFLICT (consumer_id, topic, partition, kafka_offset) WHERE status IN ('dead', 'parked')"
    " DO NOTHING";

// Where letters wait behind another one their key is parked; so it is again.
constexpr const char* kImportParkedKey =
    "INSERT INTO pawl.parked_keys (consumer_id, topic, record_key_hash)"
    " VALUES ($1::integer, $2, $3::bytea) ON CONFLICT DO NOTHING";

constexpr const char* kEraseLetters =
    "UPDATE pawl.dead_letters d"
    "   SET record_key = NULL, record_value = NULL, headers = NULL, error_detail = NULL,"
    "       idempotency_key = NULL, error = '(erased)', payload = 'erased',"
    "       record_key_hash = NULL,"
    "       resolution = CASE WHEN d.status IN ('dead', 'parked') THEN 'erased' ELSE d.resolution "
    "END,"
    "       resolved_by = CASE WHEN d.status IN ('dead', 'parked') THEN session_user ELSE "
    "d.resolved_by END,"
    "       resolved_at = CASE WHEN d.status IN ('dead', 'parked') THEN clock_timestamp() ELSE "
    "d.resolved_at END,"
    "       status = CASE WHEN d.status IN ('dead', 'parked') THEN 'discarded' ELSE d.status END"
    " WHERE d.consumer_id = $1::integer AND d.record_key_hash = sha256($2::bytea)";

constexpr const char* kEraseSkipped =
    "UPDATE pawl.skipped_messages s"
    "   SET record_key = NULL, record_value = NULL, headers = NULL"
    " WHERE s.consumer_id = $1::integer AND s.record_key = $2::bytea";

constexpr const char* kCountLetters =
    "SELECT count(*) FROM pawl.dead_letters d"
    " WHERE d.consumer_id = $1::integer AND d.record_key_hash = sha256($2::bytea)";

constexpr const char* kCountSkipped =
    "SELECT count(*) FROM pawl.skipped_messages s"
    " WHERE s.consumer_id = $1::integer AND s.record_key = $2::bytea";

}  // namespace

DeadLetterChanges::DeadLetterChanges(const std::string& schema, ConsumerId consumer)
    : consumer_(consumer),
      replayed_{"pawl_replayed", in_schema(kReplayed, schema)},
      failed_again_{"", in_schema(kFailedAgain, schema)},
      discard_{"pawl_discard", in_schema(kDiscard, schema)},
      import_{"pawl_import", in_schema(kImport, schema)},
      import_parked_key_{"pawl_import_parked_key", in_schema(kImportParkedKey, schema)},
      erase_letters_{"", in_schema(kEraseLetters, schema)},
      erase_skipped_{"", in_schema(kEraseSkipped, schema)},
      count_letters_{"", in_schema(kCountLetters, schema)},
      count_skipped_{"", in_schema(kCountSkipped, schema)} {}

void DeadLetterChanges::fill_replayed(postgres::Parameters& parameters, std::int64_t letter,
                                      const std::string& transaction, Outcome outcome) {
  parameters.add_integer(letter);
  parameters.add_text_or_null(transaction);
  parameters.add_text(to_string(outcome));
}

void DeadLetterChanges::record_failure(postgres::Session& session, std::int64_t letter,
                                       const std::string& why) const {
  postgres::Parameters parameters;
  parameters.add_integer(letter);
  parameters.add_text(storable_text(why, kLongestError));
  postgres::run_transaction(session, {{&failed_again_, std::move(parameters)}});
}

bool DeadLetterChanges::discard(postgres::Session& session, std::int64_t letter,
                                const std::string& reason) const {
  postgres::Parameters parameters;
  parameters.add_integer(letter);
  parameters.add_text(reason);
  try {
    postgres::run_transaction(session, {{&discard_, std::move(parameters)}});
    return true;
  } catch (const postgres::Error& error) {
    if (error.sqlstate() == postgres::kResolvedState)
      return false;
    throw;
  }
}

std::int64_t DeadLetterChanges::import(postgres::Session& session,
                                       const std::vector<DeadLetter>& letters) const {
  std::vector<postgres::Step> steps;
  for (const auto& letter : letters) {
    postgres::Parameters row;
    row.add_integer(static_cast<std::int64_t>(consumer_));
    row.add_text(letter.partition.topic);
    row.add_text(letter.topic_id);
    row.add_integer(letter.partition.partition);
    row.add_integer(letter.offset);
    row.add_optional_integer(letter.leader_epoch);
    row.add_integer(letter.timestamp_ms);
    row.add_text(letter.status);
    row.add_text(letter.reason);
    row.add_text(letter.handler);
    row.add_optional_text(letter.idempotency_key);
    row.add_text(letter.sqlstate);
    row.add_text(letter.error);
    row.add_text(letter.error_detail);
    row.add_integer(letter.attempts);
    row.add_optional_bytes(letter.record_key);
    row.add_optional_bytes(letter.record_key_hash);
    row.add_optional_bytes(letter.record_value);
    row.add_optional_integer(letter.value_bytes);
    if (letter.payload == "omitted" || letter.payload == "erased") {
      row.add_null();
    } else {
      std::vector<Header> headers;
      for (const auto& header : letter.headers)
        headers.push_back({header.name, header.value});
      row.add_text(headers_json(headers));
    }
    row.add_text(letter.payload);
    row.add_text(letter.died_at);
    row.add_integer(letter.replays);
    steps.push_back({&import_, std::move(row)});
    if (letter.status == "parked" && letter.record_key_hash) {
      postgres::Parameters key;
      key.add_integer(static_cast<std::int64_t>(consumer_));
      key.add_text(letter.partition.topic);
      key.add_bytes(*letter.record_key_hash);
      steps.push_back({&import_parked_key_, std::move(key)});
    }
  }
  std::vector<bool> is_letter;
  is_letter.reserve(steps.size());
  for (const auto& step : steps)
    is_letter.push_back(step.statement == &import_);
  const auto results = postgres::run_transaction(session, std::move(steps));
  std::int64_t stored = 0;
  for (std::size_t i = 0; i < results.size(); ++i) {
    if (is_letter[i])
      stored += static_cast<std::int64_t>(postgres::affected_rows(results[i].get()));
  }
  return stored;
}

Erased DeadLetterChanges::erase(postgres::Session& session, const std::string& record_key) const {
  postgres::Parameters parameters;
  parameters.add_integer(static_cast<std::int64_t>(consumer_));
  parameters.add_bytes(record_key);
  const auto results = postgres::run_transaction(
      session, {{&erase_letters_, parameters}, {&erase_skipped_, parameters}});
  return {static_cast<std::int64_t>(postgres::affected_rows(results[0].get())),
          static_cast<std::int64_t>(postgres::affected_rows(results[1].get()))};
}

Erased DeadLetterChanges::count_erasable(postgres::Session& session,
                                         const std::string& record_key) const {
  postgres::Parameters parameters;
  parameters.add_integer(static_cast<std::int64_t>(consumer_));
  parameters.add_bytes(record_key);
  return {integer(session.exec(count_letters_, parameters).get(), 0, 0),
          integer(session.exec(count_skipped_, parameters).get(), 0, 0)};
}

}  // namespace pawl::ledger
