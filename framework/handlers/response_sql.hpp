#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace pawl::handlers {

/// How what a statement returns is stored as a response.
struct ResponseRules {
  std::size_t most_bytes = 0;                ///< idempotency.max_response
  std::optional<std::uint64_t> expect_rows;  ///< as of any statement; nullopt: none or one
  std::string schema;                        ///< pawl's
};

/// What the columns of a statement that gives one must be.
inline constexpr const char* kResponseColumns =
    "a response is one column. Combine several, for example with jsonb_build_object()";
inline constexpr const char* kBatchResponseColumns =
    "the responses of a batch are two columns: the number of the message (WITH ORDINALITY) and its "
    "response";

/// Why a statement cannot give a response; nullopt: it can. It is a query, or changes rows and has
/// RETURNING.
[[nodiscard]] std::optional<std::string> response_problem(std::string_view sql);

/// The statement as one that stores what it returns, one row of one column, as the response of the
/// message whose key the transaction has claimed (pawl.store_response). It raises for what cannot
/// be stored, so nobody has to read its answer before COMMIT is sent. For one without a
/// response_problem().
[[nodiscard]] std::string response_sql(std::string_view sql, const ResponseRules& rules);

/// The same for a batch: two columns, the message's number from 1 and its response
/// (pawl.store_responses). `parameters`: so many has the statement; behind them come the scope and
/// the array of keys, both null for the one message that the transaction has claimed.
[[nodiscard]] std::string batch_response_sql(std::string_view sql, const ResponseRules& rules,
                                             std::size_t parameters);

}  // namespace pawl::handlers
