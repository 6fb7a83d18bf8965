#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "postgres/session.hpp"

namespace pawl::postgres {

/// The beginning of a query's answer, and how many rows it has in all.
struct QueryAnswer {
  std::vector<std::string> columns;
  std::vector<std::vector<std::optional<std::string>>> rows;  ///< the first ones; nullopt is NULL
  std::int64_t count = 0;
};

/// Runs a query of the application's in a READ ONLY transaction, which is rolled back. `timeout`
/// bounds each of its steps on the server. Goes through a cursor, so that a large answer costs no
/// memory here: it must be a SELECT, VALUES or WITH without changes. Throws Error.
QueryAnswer read_only_query(Session& session, const std::string& sql,
                            std::chrono::milliseconds timeout, std::size_t most_rows);

}  // namespace pawl::postgres
