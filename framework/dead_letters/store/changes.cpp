#include "dead_letters/store/changes.hpp"

#include "dead_letters/store/dead_letters.hpp"
#include "ledger/payload.hpp"
#include "ledger/rows.hpp"
#include "message/timestamp.hpp"
#include "postgres/sqlstate.hpp"
#include "postgres/transaction.hpp"

namespace pawl::ledger {
namespace {

constexpr const char* kReplayed =
    "SELECT pawl.resolve_dead_letter($1::bigint, $2::xid8, 'replayed', $3)";

constexpr const char* kLockRecordKey = "SELECT pawl.lock_record_key($1::bigint)";

constexpr const char* kLetterBefore = "SELECT pawl.dead_letter_before($1::bigint)";

constexpr const char* kFailedAgain = R"sql(
  UPDATE pawl.dead_letters
     SET replays = replays + 1, sqlstate = nullif($2, ''), statement = nullif($3, ''),
         error = $4, error_detail = nullif($5, '')
   WHERE dead_letter_id = $1::bigint AND status IN ('dead', 'parked')
)sql";

constexpr const char* kDiscard =
    "SELECT pawl.resolve_dead_letter($1::bigint, NULL, 'discarded', $2)";

constexpr const char* kRecordDiscard = R"sql(
  INSERT INTO pawl.offset_history
         (consumer_id, topic, partition, action, from_offset, to_offset, reason)
  SELECT d.consumer_id, d.topic, d.partition, 'dlq discard', d.kafka_offset, d.kafka_offset,
         'dead letter ' || d.dead_letter_id || ': ' || $2
    FROM pawl.dead_letters d
   WHERE d.dead_letter_id = $1::bigint
)sql";

// The message's letter that is here already is known as in a burial (dead_letters.cpp).
constexpr const char* kImport = R"sql(
  INSERT INTO pawl.dead_letters
   (consumer_id, topic, topic_id, partition, kafka_offset, leader_epoch, timestamp_ms, status,
    reason, handler, idempotency_key, sqlstate, error, error_detail, attempts, record_key,
    record_key_hash, record_value, value_bytes, headers, payload, died_at, replays,
    message_digest, statement)
  SELECT $1::integer, $2, nullif($3, ''), $4::integer, $5::bigint, $6::integer, $7::bigint,
         $8, $9, $10, $11, nullif($12, ''), $13, nullif($14, ''), $15::integer, $16::bytea,
         $17::bytea, $18::bytea, $19::bigint, $20::jsonb, $21, $22::timestamptz, $23::integer,
         $24::bytea, nullif($25, '')
   WHERE NOT EXISTS (
         SELECT FROM pawl.dead_letters s
          WHERE s.consumer_id = $1::integer AND s.topic = $2 AND s.partition = $4::integer
            AND s.kafka_offset = $5::bigint AND s.status IN ('dead', 'parked')
            AND coalesce(s.topic_id = nullif($3, ''), true)
            AND coalesce(s.message_digest = $24::bytea,
                         s.timestamp_ms = $7::bigint
                         AND s.record_key_hash IS NOT DISTINCT FROM $17::bytea
                         AND s.value_bytes IS NOT DISTINCT FROM $19::bigint))
  ON CONFLICT DO NOTHING
)sql";

// Where letters wait behind another one their key is parked; so it is again. DO UPDATE, to hold the
// row before any letter of the key is there, and to be seen by claims with an older snapshot.
constexpr const char* kImportParkedKey = R"sql(
  INSERT INTO pawl.parked_keys AS k (consumer_id, topic, record_key_hash)
  VALUES ($1::integer, $2, $3::bytea)
  ON CONFLICT (consumer_id, topic, record_key_hash) DO UPDATE SET parked_at = k.parked_at
)sql";

// First of all: whoever parks a message of the key holds the row, and its letter is seen below; who
// comes later finds that nothing waits.
constexpr const char* kEraseParkedKeys = R"sql(
  DELETE FROM pawl.parked_keys k
   WHERE k.consumer_id = $1::integer AND k.record_key_hash = sha256($2::bytea)
)sql";

constexpr const char* kEraseLetters = R"sql(
  UPDATE pawl.dead_letters d
     SET record_key = NULL, record_value = NULL, headers = NULL, error_detail = NULL,
         idempotency_key = NULL, statement = NULL, error = '(erased)', payload = 'erased',
         record_key_hash = NULL, message_digest = NULL,
         resolution = CASE WHEN d.status IN ('dead', 'parked') THEN 'erased' ELSE d.resolution END,
         resolved_by = CASE WHEN d.status IN ('dead', 'parked') THEN session_user
                          ELSE d.resolved_by END,
         resolved_at = CASE WHEN d.status IN ('dead', 'parked') THEN clock_timestamp()
                          ELSE d.resolved_at END,
         status = CASE WHEN d.status IN ('dead', 'parked') THEN 'discarded' ELSE d.status END
   WHERE d.consumer_id = $1::integer AND d.record_key_hash = sha256($2::bytea)
)sql";

constexpr const char* kEraseSkipped = R"sql(
  UPDATE pawl.skipped_messages s
     SET record_key = NULL, record_value = NULL, headers = NULL,
         halt_cause = NULL, halt_parameters = NULL
   WHERE s.consumer_id = $1::integer AND s.record_key = $2::bytea
)sql";

constexpr const char* kCountLetters = R"sql(
  SELECT count(*) FROM pawl.dead_letters d
   WHERE d.consumer_id = $1::integer AND d.record_key_hash = sha256($2::bytea)
)sql";

constexpr const char* kCountSkipped = R"sql(
  SELECT count(*) FROM pawl.skipped_messages s
   WHERE s.consumer_id = $1::integer AND s.record_key = $2::bytea
)sql";

}  // namespace

DeadLetterChanges::DeadLetterChanges(const std::string& schema, ConsumerId consumer)
    : consumer_(consumer),
      replayed_{"pawl_replayed", in_schema(kReplayed, schema)},
      lock_record_key_{"pawl_lock_record_key", in_schema(kLockRecordKey, schema)},
      letter_before_{"pawl_letter_before", in_schema(kLetterBefore, schema)},
      failed_again_{"", in_schema(kFailedAgain, schema)},
      discard_{"pawl_discard", in_schema(kDiscard, schema)},
      record_discard_{"", in_schema(kRecordDiscard, schema)},
      // Without a name it is planned each time, for a table that grows as it runs.
      import_{"", in_schema(kImport, schema)},
      import_parked_key_{"pawl_import_parked_key", in_schema(kImportParkedKey, schema)},
      erase_parked_keys_{"", in_schema(kEraseParkedKeys, schema)},
      erase_letters_{"", in_schema(kEraseLetters, schema)},
      erase_skipped_{"", in_schema(kEraseSkipped, schema)},
      count_letters_{"", in_schema(kCountLetters, schema)},
      count_skipped_{"", in_schema(kCountSkipped, schema)} {}

void DeadLetterChanges::resolve(postgres::Request& request, std::int64_t letter,
                                const std::string& transaction, Outcome outcome) const {
  auto& parameters = request.to(replayed_);
  parameters.add_integer(letter);
  parameters.add_text_or_null(transaction);
  parameters.add_text(to_string(outcome));
}

void DeadLetterChanges::lock_record_key(postgres::Request& request, std::int64_t letter) const {
  request.to(lock_record_key_).add_integer(letter);
}

std::optional<std::int64_t> DeadLetterChanges::letter_before(postgres::Session& session,
                                                             std::int64_t letter) const {
  postgres::Parameters parameters;
  parameters.add_integer(letter);
  return optional_integer(session.exec(letter_before_, parameters).get(), 0, 0);
}

void DeadLetterChanges::record_failure(postgres::Session& session, std::int64_t letter,
                                       const ReplayFailure& failure) const {
  postgres::Parameters parameters;
  parameters.add_integer(letter);
  parameters.add_text(failure.sqlstate);
  parameters.add_text(failure.statement);
  parameters.add_text(storable_text(failure.error, kLongestError));
  parameters.add_text(storable_text(failure.detail, kLongestError));
  postgres::run_transaction(session, {{&failed_again_, std::move(parameters)}});
}

bool DeadLetterChanges::discard(postgres::Session& session, std::int64_t letter,
                                const std::string& reason, bool in_history) const {
  const auto arguments = [&] {
    postgres::Parameters parameters;
    parameters.add_integer(letter);
    parameters.add_text(reason);
    return parameters;
  };
  std::vector<postgres::Request> steps;
  steps.push_back({&discard_, arguments()});
  if (in_history)
    steps.push_back({&record_discard_, arguments()});
  try {
    postgres::run_transaction(session, std::move(steps));
    return true;
  } catch (const postgres::Error& error) {
    if (error.sqlstate() == postgres::kResolvedState)
      return false;
    throw;
  }
}

std::int64_t DeadLetterChanges::import(postgres::Session& session,
                                       const std::vector<DeadLetter>& letters) const {
  std::vector<postgres::Request> steps;
  for (const auto& letter : letters) {
    if (letter.status == "parked" && letter.record_key_hash) {
      postgres::Parameters key;
      key.add_integer(static_cast<std::int64_t>(consumer_));
      key.add_text(letter.partition.topic);
      key.add_bytes(*letter.record_key_hash);
      steps.push_back({&import_parked_key_, std::move(key)});
    }
    postgres::Parameters row;
    row.add_integer(static_cast<std::int64_t>(consumer_));
    row.add_text(letter.partition.topic);
    row.add_text(letter.topic_id);
    row.add_integer(letter.partition.partition);
    row.add_integer(letter.offset);
    row.add_optional_integer(letter.leader_epoch);
    row.add_integer(message::milliseconds_of(letter.timestamp));
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
    if (letter.headers_unknown) {
      row.add_text(kUnknownHeaders);
    } else if (letter.payload == "omitted" || letter.payload == "erased") {
      row.add_null();
    } else {
      row.add_text(headers_json(views_of(letter.headers)));
    }
    row.add_text(letter.payload);
    row.add_text(letter.died_at);
    row.add_integer(letter.replays);
    row.add_optional_bytes(letter.message_digest);
    row.add_text(letter.statement);
    steps.push_back({&import_, std::move(row)});
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
  const auto results = postgres::run_transaction(session, {{&erase_parked_keys_, parameters},
                                                           {&erase_letters_, parameters},
                                                           {&erase_skipped_, parameters}});
  return {static_cast<std::int64_t>(postgres::affected_rows(results[1].get())),
          static_cast<std::int64_t>(postgres::affected_rows(results[2].get()))};
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
