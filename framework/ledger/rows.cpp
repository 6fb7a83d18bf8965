#include "ledger/rows.hpp"

#include <charconv>
#include <cstring>
#include <stdexcept>

namespace pawl::ledger {

bool is_null(const PGresult* rows, int row, int column) {
  return PQgetisnull(rows, row, column) == 1;
}

std::string text(const PGresult* rows, int row, int column) {
  return {PQgetvalue(rows, row, column), static_cast<std::size_t>(PQgetlength(rows, row, column))};
}

std::int64_t integer(const PGresult* rows, int row, int column) {
  const char* begin = PQgetvalue(rows, row, column);
  std::int64_t number = 0;
  const auto parsed = std::from_chars(begin, begin + std::strlen(begin), number);
  if (parsed.ec != std::errc{})
    throw std::logic_error("a column of pawl's tables is not an integer");
  return number;
}

std::optional<std::int64_t> optional_integer(const PGresult* rows, int row, int column) {
  if (is_null(rows, row, column))
    return std::nullopt;
  return integer(rows, row, column);
}

Instant instant(const PGresult* rows, int row, int column) {
  return Instant{std::chrono::milliseconds{integer(rows, row, column)}};
}

std::optional<Instant> optional_instant(const PGresult* rows, int row, int column) {
  return is_null(rows, row, column) ? std::nullopt : std::optional(instant(rows, row, column));
}

bool boolean(const PGresult* rows, int row, int column) {
  return PQgetvalue(rows, row, column)[0] == 't';
}

std::optional<std::string> bytes(const PGresult* rows, int row, int column) {
  if (is_null(rows, row, column))
    return std::nullopt;
  std::size_t length = 0;
  auto* raw = PQunescapeBytea(reinterpret_cast<const unsigned char*>(PQgetvalue(rows, row, column)),
                              &length);
  if (raw == nullptr)
    throw std::bad_alloc();
  std::string result(reinterpret_cast<const char*>(raw), length);
  PQfreemem(raw);
  return result;
}

void add_timestamp(postgres::Parameters& parameters, std::optional<Timestamp> time) {
  parameters.add_optional_integer(time ? std::optional(time->time_since_epoch().count())
                                       : std::nullopt);
}

Halt read_halt(const PGresult* rows, int row, int column) {
  return {.kind = text(rows, row, column),
          .code = text(rows, row, column + 1),
          .message_offset = optional_integer(rows, row, column + 2),
          .handler = text(rows, row, column + 3),
          .cause = text(rows, row, column + 4),
          .parameters = parse_parameters_json(text(rows, row, column + 5))};
}

void add_halt(postgres::Parameters& parameters, const Halt& halt) {
  parameters.add_text_or_null(halt.kind);
  parameters.add_text_or_null(halt.code);
  parameters.add_optional_integer(halt.message_offset);
  parameters.add_text_or_null(halt.handler);
  parameters.add_text_or_null(halt.cause);
  parameters.add_text_or_null(parameters_json(halt));
}

PartitionState parse_state(const std::string& state) {
  if (state == "running")
    return PartitionState::kRunning;
  if (state == "paused")
    return PartitionState::kPaused;
  if (state == "halted")
    return PartitionState::kHalted;
  throw std::logic_error("unknown partition state '" + state +
                         "'. This program is older than the schema");
}

const char* to_string(PartitionState state) {
  switch (state) {
    case PartitionState::kRunning:
      return "running";
    case PartitionState::kPaused:
      return "paused";
    case PartitionState::kHalted:
      return "halted";
  }
  return "unknown";
}

const char* to_string(Outcome outcome) {
  switch (outcome) {
    case Outcome::kApplied:
      return "applied";
    case Outcome::kDuplicate:
      return "duplicate";
    case Outcome::kSkipped:
      return "skipped";
    case Outcome::kUnchecked:
      return "unchecked";
    case Outcome::kDead:
      return "dead";
    case Outcome::kParked:
      return "parked";
    case Outcome::kEndOfLog:
      return "end of log";
  }
  return "unknown";
}

Outcome parse_outcome(const std::string& outcome) {
  for (const auto known : {Outcome::kApplied, Outcome::kDuplicate, Outcome::kSkipped,
                           Outcome::kUnchecked, Outcome::kDead, Outcome::kParked}) {
    if (outcome == to_string(known))
      return known;
  }
  throw std::logic_error("unknown outcome '" + outcome +
                         "'. This program is older than the schema");
}

std::string in_schema(std::string_view text, std::string_view schema) {
  constexpr std::string_view kDefault = "pawl.";
  std::string result;
  std::size_t from = 0;
  for (auto at = text.find(kDefault); at != std::string_view::npos;
       at = text.find(kDefault, from)) {
    result.append(text.substr(from, at - from)).append(schema).append(".");
    from = at + kDefault.size();
  }
  return result.append(text.substr(from));
}

}  // namespace pawl::ledger
