#include "ledger/skipped_messages.hpp"

#include "ledger/payload.hpp"
#include "ledger/rows.hpp"
#include "message/timestamp.hpp"

namespace pawl::ledger {
namespace {

constexpr const char* kRecord = R"sql(
  INSERT INTO pawl.skipped_messages (consumer_id, topic, partition, kafka_offset, reason,
                                    record_key, record_value, headers, timestamp_ms,
                                    halt_kind, halt_code, halt_cause, halt_parameters)
  VALUES ($1::integer, $2, $3::integer, $4::bigint, $5, $6::bytea, $7::bytea, $8::jsonb,
         $9::bigint, $10, $11, $12, $13::jsonb)
)sql";

}  // namespace

SkippedMessages::SkippedMessages(const std::string& schema, ConsumerId consumer)
    : consumer_(consumer), record_{"pawl_record_skipped", in_schema(kRecord, schema)} {}

postgres::Request SkippedMessages::record(const Message& message, const std::string& reason,
                                          bool with_payload,
                                          const std::optional<Halt>& halt) const {
  postgres::Request request;
  auto& parameters = request.to(record_);
  parameters.add_integer(static_cast<std::int64_t>(consumer_));
  parameters.add_text(message.topic());
  parameters.add_integer(message.partition());
  parameters.add_integer(message.offset());
  parameters.add_text(reason);
  parameters.add_optional_bytes(with_payload ? message.key() : std::nullopt);
  if (with_payload && message.has_value()) {
    parameters.add_bytes(message.value());
  } else {
    parameters.add_null();
  }
  if (with_payload) {
    parameters.add_text(headers_json(message));
  } else {
    parameters.add_null();
  }
  parameters.add_integer(message::milliseconds_of(message.timestamp()));
  const auto caused = halt.value_or(Halt{});
  parameters.add_text_or_null(caused.kind);
  parameters.add_text_or_null(caused.code);
  parameters.add_text_or_null(caused.cause);
  parameters.add_text_or_null(parameters_json(caused));
  return request;
}

}  // namespace pawl::ledger
