#pragma once

#include <libpq-fe.h>

#include <cstdint>
#include <optional>
#include <string>

#include "ledger/instant.hpp"
#include "ledger/types.hpp"
#include "pawl/message.hpp"
#include "postgres/parameters.hpp"

namespace pawl::ledger {

/// Reading columns of our own queries, whose types we know.
[[nodiscard]] bool is_null(const PGresult* rows, int row, int column);
[[nodiscard]] std::string text(const PGresult* rows, int row, int column);
[[nodiscard]] std::int64_t integer(const PGresult* rows, int row, int column);
[[nodiscard]] std::optional<std::int64_t> optional_integer(const PGresult* rows, int row,
                                                           int column);
/// Milliseconds since 1970.
[[nodiscard]] Instant instant(const PGresult* rows, int row, int column);
[[nodiscard]] std::optional<Instant> optional_instant(const PGresult* rows, int row, int column);
[[nodiscard]] bool boolean(const PGresult* rows, int row, int column);
/// A bytea column's bytes.
[[nodiscard]] std::optional<std::string> bytes(const PGresult* rows, int row, int column);

/// The other way round, of a record's time; NULL where it carries none.
void add_timestamp(postgres::Parameters& parameters, std::optional<Timestamp> time);

/// The columns halt_kind, halt_code, halt_offset, halt_handler, halt_cause, and halt_parameters,
/// from `column` on.
[[nodiscard]] Halt read_halt(const PGresult* rows, int row, int column);
/// The same six; NULL for what the halt does not have.
void add_halt(postgres::Parameters& parameters, const Halt& halt);

[[nodiscard]] PartitionState parse_state(const std::string& state);
[[nodiscard]] const char* to_string(PartitionState state);
[[nodiscard]] const char* to_string(Outcome outcome);
[[nodiscard]] Outcome parse_outcome(const std::string& outcome);

/// `pawl.` in a statement's text becomes the configured schema, quoted for SQL by validation
/// (plain identifiers only).
[[nodiscard]] std::string in_schema(std::string_view text, std::string_view schema);

}  // namespace pawl::ledger
