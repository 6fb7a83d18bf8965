#include "ledger/skipped_messages.hpp"

#include <openssl/evp.h>

#include <nlohmann/json.hpp>

#include "ledger/rows.hpp"

namespace pawl::ledger {
namespace {

constexpr const char* kRecord =
    "INSERT INTO pawl.skipped_messages (consumer_id, topic, partition, kafka_offset, reason,"
    "                                   record_key, record_value, headers, timestamp_ms)"
    " VALUES ($1::integer, $2, $3::integer, $4::bigint, $5, $6::bytea, $7::bytea, $8::jsonb, "
    "$9::bigint)";

std::string base64(std::string_view bytes) {
  std::string encoded(4 * ((bytes.size() + 2) / 3), '\0');
  EVP_EncodeBlock(reinterpret_cast<unsigned char*>(encoded.data()),
                  reinterpret_cast<const unsigned char*>(bytes.data()),
                  static_cast<int>(bytes.size()));
  return encoded;
}

std::string headers_json(const Message& message) {
  auto headers = nlohmann::json::array();
  for (const auto& header : message.headers()) {
    headers.push_back({{"name", std::string(header.name)},
                       {"value", header.value ? nlohmann::json(base64(*header.value))
                                              : nlohmann::json(nullptr)}});
  }
  return headers.dump(-1, ' ', true, nlohmann::json::error_handler_t::replace);
}

}  // namespace

SkippedMessages::SkippedMessages(const std::string& schema, ConsumerId consumer)
    : consumer_(consumer), record_{"pawl_record_skipped", in_schema(kRecord, schema)} {}

void SkippedMessages::fill(postgres::Parameters& parameters, const Message& message,
                           const std::string& reason, bool with_payload) const {
  parameters.add_integer(static_cast<std::int64_t>(consumer_));
  parameters.add_text(message.topic());
  parameters.add_integer(message.partition());
  parameters.add_integer(message.offset());
  parameters.add_text(reason);
  if (with_payload && message.key()) {
    parameters.add_bytes(*message.key());
  } else {
    parameters.add_null();
  }
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
  parameters.add_integer(message.timestamp_ms());
}

}  // namespace pawl::ledger
