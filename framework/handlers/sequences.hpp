#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "handlers/router.hpp"
#include "postgres/session.hpp"

namespace pawl::handlers {

/// What is wrong with the sequences of pawl's own tables and of those that the handlers' statements
/// write to: a sequence that is behind its table gives numbers which the table has.
struct SequenceFindings {
  std::vector<std::string> problems;  ///< each with the statement that repairs it
  std::size_t unreadable = 0;         ///< of pawl's own
};

/// `router`: null where there are no handlers. Throws postgres::Error when the connection is lost.
[[nodiscard]] SequenceFindings check_sequences(postgres::Session& session,
                                               const std::string& schema, const Router* router);

}  // namespace pawl::handlers
