#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace pawl::handlers {

/// The statement as one that raises PW009 unless it touches exactly `rows` rows, instead of leaving
/// it to the reader of the answer to count them: for where COMMIT is sent before any answer comes.
/// Nullopt where a WITH cannot hold it: statements that begin with other words than SELECT, INSERT,
/// UPDATE or DELETE, or have a WITH of their own (PostgreSQL manual, 7.8.4: what changes data must
/// stand at the top). `schema` is pawl's.
[[nodiscard]] std::optional<std::string> counted_sql(std::string_view sql, std::uint64_t rows,
                                                     std::string_view schema);

}  // namespace pawl::handlers
