#include "dead_letters/store/dead_letters.hpp"

#include <fmt/format.h>
#include <simdjson.h>

#include "ledger/partition_parameters.hpp"
#include "ledger/payload.hpp"
#include "ledger/rows.hpp"
#include "message/message_digest.hpp"
#include "message/timestamp.hpp"
#include "text/bounded.hpp"

namespace pawl::ledger {
namespace {

// A position that was set back meets its dead letters again: what is unresolved is updated. Another
// message may have the offset (a topic made anew, a log that was cut and has grown again): it is
// another letter. A message that is only parked again says nothing new of what is known of it.
// Two owners that both find none cannot both commit: the register's advance is behind.
constexpr const char* kBury = R"sql(
  WITH again AS (
    UPDATE pawl.dead_letters d
       SET status = CASE WHEN $8 = 'parked' THEN d.status ELSE $8 END,
           reason = CASE WHEN $8 = 'parked' THEN d.reason ELSE $9 END,
           handler = CASE WHEN $8 = 'parked' THEN d.handler ELSE $10 END,
           idempotency_key = coalesce($11, d.idempotency_key),
           sqlstate = CASE WHEN $8 = 'parked' THEN d.sqlstate ELSE $12 END,
           error = CASE WHEN $8 = 'parked' THEN d.error ELSE $13 END,
           error_detail = CASE WHEN $8 = 'parked' THEN d.error_detail ELSE $14 END,
           attempts = d.attempts + $15::integer, died_at = clock_timestamp(),
           message_digest = $22::bytea
     WHERE d.status IN ('dead', 'parked')
       AND d.dead_letter_id =
           (SELECT s.dead_letter_id FROM pawl.dead_letters s
             WHERE s.consumer_id = $1::integer AND s.topic = $2 AND s.partition = $4::integer
               AND s.kafka_offset = $5::bigint AND s.status IN ('dead', 'parked')
               AND coalesce(s.topic_id = $3, true)
               AND coalesce(s.message_digest = $22::bytea,
                            s.timestamp_ms = $7::bigint
                            AND s.record_key_hash IS NOT DISTINCT FROM sha256($17::bytea)
                            AND s.value_bytes IS NOT DISTINCT FROM $19::bigint)
             ORDER BY s.dead_letter_id LIMIT 1)
    RETURNING d.dead_letter_id),
  fresh AS (
    INSERT INTO pawl.dead_letters
      (consumer_id, topic, topic_id, partition, kafka_offset, leader_epoch, timestamp_ms, status,
       reason, handler, idempotency_key, sqlstate, error, error_detail, attempts, record_key,
       record_key_hash, record_value, value_bytes, headers, payload, message_digest)
     SELECT $1::integer, $2, $3, $4::integer, $5::bigint, $6::integer, $7::bigint, $8, $9, $10,
            $11, $12, $13, $14, $15::integer, $16::bytea, sha256($17::bytea), $18::bytea,
            $19::bigint, $20::jsonb, $21, $22::bytea
      WHERE NOT EXISTS (SELECT FROM again)
    RETURNING dead_letter_id)
  SELECT dead_letter_id FROM again UNION ALL SELECT dead_letter_id FROM fresh
)sql";

// A letter that was dead or waited before, and is only parked again, keeps what it has. A parked
// one whose position was set back may be the first of its key: nothing that it waits for would make
// it due.
constexpr const char* kSchedule = R"sql(
  UPDATE pawl.dead_letters d
     SET due_at = CASE WHEN $6::bigint IS NOT NULL
                       THEN clock_timestamp() + make_interval(secs => $6::bigint / 1000.0)
                       WHEN pawl.letter_before(d.dead_letter_id) IS NULL THEN clock_timestamp()
                       ELSE 'infinity' END,
         retries = CASE WHEN $6::bigint IS NULL THEN -1 ELSE 0 END
   WHERE d.consumer_id = $1::integer AND d.topic = $2 AND d.partition = $3::integer
     AND d.kafka_offset = $4::bigint AND d.message_digest = $5::bytea
     AND (d.status = 'dead' AND $6::bigint IS NOT NULL OR d.status = 'parked' AND d.due_at IS NULL)
)sql";

// DO UPDATE, to hold the row: whoever removes it next sees the dead letter of this transaction.
constexpr const char* kParkKey = R"sql(
  INSERT INTO pawl.parked_keys AS k (consumer_id, topic, record_key_hash)
  VALUES ($1::integer, $2, sha256($3::bytea))
  ON CONFLICT (consumer_id, topic, record_key_hash) DO UPDATE SET parked_at = k.parked_at
)sql";

constexpr const char* kIsParked =
    "SELECT pawl.is_parked($1::integer, $2, $3::bytea), pg_current_xact_id()";

// Each key by itself, by the index, whatever the statistics say.
constexpr const char* kFirstParked = R"sql(
  SELECT asked.place - 1
    FROM unnest($3::bytea[]) WITH ORDINALITY AS asked (record_key, place)
   CROSS JOIN LATERAL (SELECT FROM pawl.parked_keys k
                        WHERE k.consumer_id = $1::integer AND k.topic = $2
                          AND k.record_key_hash = sha256(asked.record_key) OFFSET 0) parked
   ORDER BY 1 LIMIT 1
)sql";

}  // namespace

std::string storable_text(std::string_view text, std::size_t most) {
  const auto kept = texts::bounded(text, most);
  text = kept;
  std::string result;
  result.reserve(text.size());
  while (!text.empty()) {
    const auto byte = static_cast<unsigned char>(text.front());
    const std::size_t length = byte < 0x80 ? 1 : byte < 0xE0 ? 2 : byte < 0xF0 ? 3 : 4;
    const auto character = text.substr(0, length);
    if (byte != 0 && character.size() == length &&
        simdjson::validate_utf8(character.data(), character.size())) {
      result.append(character);
      text.remove_prefix(length);
    } else {
      result.append(fmt::format("\\x{:02x}", byte));
      text.remove_prefix(1);
    }
  }
  return result;
}

DeadLetters::DeadLetters(const std::string& schema, ConsumerId consumer,
                         const DeadLetterOptions& options)
    : consumer_(consumer),
      options_(options),
      bury_{"pawl_bury", in_schema(kBury, schema)},
      schedule_{"pawl_schedule_letter", in_schema(kSchedule, schema)},
      park_key_{"pawl_park_key", in_schema(kParkKey, schema)},
      is_parked_{"pawl_is_parked", in_schema(kIsParked, schema)},
      first_parked_{"pawl_first_parked", in_schema(kFirstParked, schema)} {}

postgres::Request DeadLetters::bury(const Message& message, const Burial& burial) const {
  postgres::Request request;
  auto& parameters = request.to(bury_);
  parameters.add_integer(static_cast<std::int64_t>(consumer_));
  parameters.add_text(message.topic());
  parameters.add_text_or_null(message.topic_id());
  parameters.add_integer(message.partition());
  parameters.add_integer(message.offset());
  parameters.add_optional_integer(burial.leader_epoch);
  parameters.add_integer(message::milliseconds_of(message.timestamp()));
  parameters.add_text(burial.parked ? "parked" : "dead");
  parameters.add_text(burial.reason);
  parameters.add_text(burial.handler);
  parameters.add_text_or_null(burial.idempotency_key);
  parameters.add_text_or_null(burial.sqlstate);
  parameters.add_text(storable_text(burial.error, kLongestError));
  parameters.add_text_or_null(storable_text(burial.error_detail, kLongestError));
  parameters.add_integer(burial.attempts);

  const bool stored = options_.store_payload;
  parameters.add_optional_bytes(stored ? message.key() : std::nullopt);
  parameters.add_optional_bytes(message.key());
  const bool truncated = message.value().size() > options_.max_payload;
  if (stored && message.has_value()) {
    parameters.add_bytes(message.value().substr(0, options_.max_payload));
  } else {
    parameters.add_null();
  }
  if (message.has_value()) {
    parameters.add_integer(static_cast<std::int64_t>(message.value().size()));
  } else {
    parameters.add_null();
  }
  // That they are unknown is said also where nothing of the message is stored.
  if (stored || message.headers_unreadable()) {
    parameters.add_text(headers_json(message));
  } else {
    parameters.add_null();
  }
  parameters.add_text(!stored ? "omitted" : truncated ? "truncated" : "complete");
  parameters.add_bytes(message::message_digest(message));
  return request;
}

postgres::Request DeadLetters::schedule(const Message& message, const Burial& burial) const {
  postgres::Request request;
  auto& parameters = request.to(schedule_);
  parameters.add_integer(static_cast<std::int64_t>(consumer_));
  parameters.add_text(message.topic());
  parameters.add_integer(message.partition());
  parameters.add_integer(message.offset());
  parameters.add_bytes(message::message_digest(message));
  if (burial.parked) {
    parameters.add_null();
  } else {
    parameters.add_integer(burial.retry_after->count());
  }
  return request;
}

RecordKey DeadLetters::record_key(const Message& message) const {
  return {consumer_, message.topic(), message.key().value()};
}

postgres::Request DeadLetters::park_key(const Message& message) const {
  postgres::Request request;
  add_record_key(request.to(park_key_), record_key(message));
  return request;
}

postgres::Request DeadLetters::ask_parked(const Message& message) const {
  postgres::Request request;
  add_record_key(request.to(is_parked_), record_key(message));
  return request;
}

void DeadLetters::ask_first_parked(postgres::Request& request, const std::string& topic,
                                   const postgres::ArrayElements& record_keys) const {
  auto& parameters = request.to(first_parked_);
  parameters.add_integer(static_cast<std::int64_t>(consumer_));
  parameters.add_text(topic);
  parameters.add_text(record_keys.array());
}

std::optional<std::size_t> DeadLetters::first_parked(const PGresult* rows) {
  if (PQntuples(rows) == 0)
    return std::nullopt;
  return static_cast<std::size_t>(integer(rows, 0, 0));
}

bool DeadLetters::parked(const PGresult* rows) {
  return boolean(rows, 0, 0);
}

std::string DeadLetters::transaction(const PGresult* rows) {
  return text(rows, 0, 1);
}

}  // namespace pawl::ledger
