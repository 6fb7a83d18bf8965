#include "postgres/error.hpp"

#include <fmt/format.h>

#include <cstdlib>
#include <utility>

#include "postgres/connect_advice.hpp"
#include "text/bounded.hpp"

namespace pawl::postgres {
namespace {

std::string field(const PGresult* result, int code) {
  const char* text = PQresultErrorField(result, code);
  return text == nullptr ? std::string{} : std::string{text};
}

}  // namespace

std::uint64_t affected_rows(const PGresult* result) {
  // PQcmdTuples takes a non-const result but only reads it.
  return std::strtoull(PQcmdTuples(const_cast<PGresult*>(result)), nullptr, 10);
}

Error Error::from(const PGresult* result, const std::string& own_schema) {
  auto message = field(result, PG_DIAG_MESSAGE_PRIMARY);
  if (message.empty())
    message = PQresultErrorMessage(result);
  const auto hint = field(result, PG_DIAG_MESSAGE_HINT);
  const auto state = field(result, PG_DIAG_SQLSTATE);
  const bool own_constraint = !field(result, PG_DIAG_CONSTRAINT_NAME).empty() &&
                              field(result, PG_DIAG_SCHEMA_NAME) == own_schema;
  auto text = texts::bounded(message, texts::kLongestQuote);
  auto detail = field(result, PG_DIAG_MESSAGE_DETAIL);
  if (text != message)
    detail = detail.empty() ? message : fmt::format("{}\n{}", message, detail);
  if (own_constraint && state == "23505")
    text += ". The sequence of this table may be out of sync with it. `check` lists such sequences";
  // In which poolers refuse what they do not support.
  if (state == "08P01")
    text += connect_advice(message, {}, "");
  if (!hint.empty())
    text += fmt::format(" (HINT: {})", texts::bounded(hint, texts::kLongestQuote));
  Error error(
      state, text, std::move(detail),
      {field(result, PG_DIAG_SOURCE_FUNCTION), !field(result, PG_DIAG_INTERNAL_QUERY).empty()});
  error.met_.own_constraint = own_constraint;
  return error;
}

Error Error::row_missing() {
  return {std::string(kRowMissingState),
          "the message is applied and its key is stored, but the row with the stored offset of its "
          "partition was deleted"};
}

Error Error::connection_lost(const std::string& what) {
  // libpq's text has several lines, and may end with a period; a caller continues it.
  std::string text;
  for (const char c : what) {
    const bool space = c == '\n' || c == '\t' || c == ' ';
    if (!space)
      text += c;
    else if (!text.empty() && text.back() != ' ')
      text += ' ';
  }
  while (!text.empty() && (text.back() == '.' || text.back() == ' '))
    text.pop_back();
  return {"", text.empty() ? "connection to PostgreSQL lost"
                           : texts::bounded(text, texts::kLongestCause)};
}

}  // namespace pawl::postgres
