#include "postgres/read_only_query.hpp"

#include <fmt/format.h>

namespace pawl::postgres {
namespace {

Result run(Session& session, const std::string& sql) {
  return session.exec(Statement{"", sql});
}

QueryAnswer read(Session& session, const std::string& sql, std::chrono::milliseconds timeout,
                 std::size_t most_rows) {
  run(session, fmt::format("SET LOCAL statement_timeout = {}", timeout.count()));
  run(session, "DECLARE pawl_query NO SCROLL CURSOR FOR " + sql);
  const auto fetched = run(session, fmt::format("FETCH FORWARD {} FROM pawl_query", most_rows));
  const auto passed = run(session, "MOVE FORWARD ALL IN pawl_query");

  QueryAnswer answer;
  const auto* rows = fetched.get();
  for (int column = 0; column < PQnfields(rows); ++column)
    answer.columns.emplace_back(PQfname(rows, column));
  for (int row = 0; row < PQntuples(rows); ++row) {
    auto& values = answer.rows.emplace_back();
    for (int column = 0; column < PQnfields(rows); ++column) {
      auto& value = values.emplace_back();
      if (PQgetisnull(rows, row, column) == 0)
        value = PQgetvalue(rows, row, column);
    }
  }
  answer.count = PQntuples(rows) + std::stoll(PQcmdTuples(passed.get()));
  return answer;
}

}  // namespace

QueryAnswer read_only_query(Session& session, const std::string& sql,
                            std::chrono::milliseconds timeout, std::size_t most_rows) {
  run(session, "BEGIN READ ONLY");
  try {
    auto answer = read(session, sql, timeout, most_rows);
    run(session, "ROLLBACK");
    return answer;
  } catch (const Error&) {
    if (session.alive())
      run(session, "ROLLBACK");
    throw;
  }
}

}  // namespace pawl::postgres
