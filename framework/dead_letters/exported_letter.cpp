#include "dead_letters/exported_letter.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string_view>

#include "console/json_integer.hpp"
#include "message/base64.hpp"

namespace pawl::cli {
namespace {

using ledger::DeadLetter;

Json encoded(const std::optional<std::string>& bytes) {
  return bytes ? Json(message::base64(*bytes)) : Json(nullptr);
}

std::optional<std::string> decoded(const Json& value) {
  if (value.is_null())
    return std::nullopt;
  return message::from_base64(value.get<std::string>());
}

/// PostgreSQL stores no NUL in a text.
std::string text(const Json& line, const char* name) {
  auto value = line.at(name).get<std::string>();
  if (value.find('\0') != std::string::npos)
    throw std::invalid_argument(fmt::format("{} contains NUL", name));
  return value;
}

/// A text that is one of those that the column may have.
template <std::size_t kSize>
std::string word(const Json& line, const char* name,
                 const std::array<std::string_view, kSize>& known) {
  auto value = text(line, name);
  if (std::ranges::find(known, value) == known.end())
    throw std::invalid_argument(fmt::format("unknown {} {}", name, value));
  return value;
}

template <typename Number>
Number integer(const Json& line, const char* name) {
  return integer_from<Number>(line.at(name), name);
}

template <typename Number>
Number count(const Json& line, const char* name) {
  const auto number = integer<Number>(line, name);
  if (number < 0)
    throw std::invalid_argument(fmt::format("{} is negative", name));
  return number;
}

template <typename Number>
std::optional<Number> optional_integer(const Json& line, const char* name) {
  return line.at(name).is_null() ? std::nullopt : std::optional(integer<Number>(line, name));
}

/// Of the headers of an export. nlohmann copies and prints a value with a stack frame per level.
constexpr int kDeepest = 8;

bool is_shallow(int depth, Json::parse_event_t /*event*/, Json& /*value*/) {
  if (depth > kDeepest)
    throw std::invalid_argument("nested too deeply");
  return true;
}

constexpr std::array<std::string_view, 4> kStatuses{"dead", "parked", "replayed", "discarded"};
constexpr std::array<std::string_view, 4> kPayloads{"complete", "truncated", "omitted", "erased"};

}  // namespace

Json exported(const DeadLetter& letter) {
  Json line;
  line["topic"] = letter.partition.topic;
  line["topic_id"] = letter.topic_id;
  line["partition"] = letter.partition.partition;
  line["offset"] = letter.offset;
  line["leader_epoch"] = or_null(letter.leader_epoch);
  line["timestamp"] = or_null(letter.timestamp);
  line["status"] = letter.status;
  line["reason"] = letter.reason;
  line["handler"] = letter.handler;
  line["idempotency_key"] = or_null(letter.idempotency_key);
  line["sqlstate"] = letter.sqlstate;
  line["statement"] = letter.statement;
  line["error"] = letter.error;
  line["error_detail"] = letter.error_detail;
  line["attempts"] = letter.attempts;
  line["replays"] = letter.replays;
  line["failed_at"] = letter.died_at;
  line["resolved_at"] = letter.resolved_at;
  line["resolved_by"] = letter.resolved_by;
  line["resolution"] = letter.resolution;
  line["payload"] = letter.payload;
  line["key"] = encoded(letter.record_key);
  line["key_hash"] = encoded(letter.record_key_hash);
  line["message_digest"] = encoded(letter.message_digest);
  line["value"] = encoded(letter.record_value);
  line["value_bytes"] = or_null(letter.value_bytes);
  // In the form in which they are stored; null: they are unknown.
  line["headers"] = letter.headers_unknown
                        ? Json(nullptr)
                        : Json::parse(ledger::headers_json(ledger::views_of(letter.headers)));
  return line;
}

DeadLetter imported(const std::string& written) {
  const auto line = Json::parse(written, is_shallow);
  DeadLetter letter;
  letter.partition = {text(line, "topic"), count<std::int32_t>(line, "partition")};
  letter.topic_id = text(line, "topic_id");
  letter.offset = count<std::int64_t>(line, "offset");
  letter.leader_epoch = optional_integer<std::int32_t>(line, "leader_epoch");
  letter.timestamp = timestamp_from(line.at("timestamp"));
  letter.status = word(line, "status", kStatuses);
  letter.reason = text(line, "reason");
  letter.handler = text(line, "handler");
  if (!line.at("idempotency_key").is_null())
    letter.idempotency_key = text(line, "idempotency_key");
  letter.sqlstate = text(line, "sqlstate");
  letter.statement = text(line, "statement");
  letter.error = text(line, "error");
  letter.error_detail = text(line, "error_detail");
  letter.attempts = count<std::int32_t>(line, "attempts");
  letter.replays = count<std::int32_t>(line, "replays");
  letter.died_at = text(line, "failed_at");
  letter.payload = word(line, "payload", kPayloads);
  letter.record_key = decoded(line.at("key"));
  letter.record_key_hash = decoded(line.at("key_hash"));
  // An erased letter has none.
  letter.message_digest = decoded(line.value("message_digest", Json(nullptr)));
  letter.record_value = decoded(line.at("value"));
  letter.value_bytes = optional_integer<std::int64_t>(line, "value_bytes");
  ledger::take_headers(letter, line.at("headers").dump());
  return letter;
}

}  // namespace pawl::cli
