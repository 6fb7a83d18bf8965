#include "ledger/instant.hpp"

#include <fmt/chrono.h>
#include <fmt/format.h>

namespace pawl::ledger {

std::string to_string(Instant time) {
  return fmt::format("{:%FT%TZ}", fmt::gmtime(std::chrono::floor<std::chrono::seconds>(time)));
}

}  // namespace pawl::ledger
