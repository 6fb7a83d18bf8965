#include "handlers/sequences.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "handlers/handler_statement.hpp"
#include "handlers/written_names.hpp"
#include "postgres/sequences.hpp"

namespace pawl::handlers {

SequenceFindings check_sequences(postgres::Session& session, const std::string& schema,
                                 const Router* router) {
  std::vector<std::string> tables;
  if (router != nullptr) {
    for (const auto& binding : router->bindings()) {
      for (const auto& statement : binding->handler->statements())
        std::ranges::move(written_names(statement.sql), std::back_inserter(tables));
    }
  }
  const auto sequences = postgres::late_sequences(session, schema, tables);
  SequenceFindings found;
  found.unreadable = sequences.unreadable;
  for (const auto& [column, highest, repair] : sequences.late) {
    found.problems.push_back(
        fmt::format("the sequence of {} is out of sync with its table, which contains {}. INSERT "
                    "fails with a duplicate "
                    "key. Logical replication does not copy sequences. Run:\n  {}",
                    column, highest, repair));
  }
  return found;
}

}  // namespace pawl::handlers
