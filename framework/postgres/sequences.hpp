#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "postgres/session.hpp"

namespace pawl::postgres {

/// A sequence that will give numbers which its column has: logical replication and some dumps copy
/// rows and leave their sequences as they were.
struct LateSequence {
  std::string column;   ///< "pawl.dead_letters.dead_letter_id", as SQL writes it
  std::string highest;  ///< its highest value
  std::string repair;   ///< the statement that sets the sequence
};

struct LateSequences {
  std::vector<LateSequence> late;
  std::size_t unreadable = 0;  ///< those in the schema that the role may not read
};

/// Of identity and serial columns of all tables in `schema`, and of `tables`, named as SQL writes
/// them, where an index leads to the highest value. What cannot be read within a second is left
/// out. Throws Error when the connection is lost; not inside a transaction.
[[nodiscard]] LateSequences late_sequences(Session& session, const std::string& schema,
                                           const std::vector<std::string>& tables);

}  // namespace pawl::postgres
