#include "ledger/instant.hpp"

#include "message/rfc3339.hpp"

namespace pawl::ledger {

std::string to_string(Instant time) {
  return message::rfc3339(time);
}

}  // namespace pawl::ledger
