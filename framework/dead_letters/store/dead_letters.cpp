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

constexpr const char* kBury = R"sql(
  SELECT pawl.store_dead_letter($1::integer, $2, $3, $4::integer, $5::bigint, $6::integer, $7::bigint, $8, $9,
                   $10, $11, $12, $13, $14, $15, $16::integer, $17::bytea, sha256($18::bytea),
                   $19::bytea, $20::bigint, $21::jsonb, $22, $23::bytea)
)sql";

constexpr const char* kSchedule = R"sql(
  SELECT pawl.schedule_dead_letter($1::integer, $2, $3::integer, $4::bigint, $5::bytea, $6::bigint)
)sql";

// DO UPDATE, to hold the row: whoever removes it next sees the dead letter of this transaction.
constexpr const char* kParkKey = R"sql(
  INSERT INTO pawl.parked_keys AS k (consumer_id, topic, record_key_hash)
  VALUES ($1::integer, $2, sha256($3::bytea))
  ON CONFLICT (consumer_id, topic, record_key_hash) DO UPDATE SET parked_at = k.parked_at
)sql";

constexpr const char* kIsParked =
    "SELECT pawl.is_parked($1::integer, $2, $3::bytea), pg_current_xact_id()";

constexpr const char* kFirstParked = "SELECT pawl.first_parked($1::integer, $2, $3::bytea[])";

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
  parameters.add_text_or_null(burial.statement);
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
  if (is_null(rows, 0, 0))
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
