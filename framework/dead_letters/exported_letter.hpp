#pragma once

#include <string>

#include "console/json.hpp"
#include "dead_letters/store/dead_letter.hpp"

namespace pawl::cli {

/// A line of `dlq export`. Keeps every byte of the message.
[[nodiscard]] Json exported(const ledger::DeadLetter& letter);

/// The dead letter of such a line. What its resolution consists of is not read, because only
/// unresolved dead letters are imported. Throws std::exception if the line is something else, or if
/// the table of dead letters cannot store it.
[[nodiscard]] ledger::DeadLetter imported(const std::string& line);

}  // namespace pawl::cli
