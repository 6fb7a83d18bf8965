#include "dead_letters/store/dead_letter.hpp"

#include <utility>

namespace pawl::ledger {

void take_headers(DeadLetter& letter, std::string_view stored) {
  auto headers = parse_message_headers(stored);
  letter.headers_unknown = !headers;
  letter.headers = std::move(headers).value_or(std::vector<StoredHeader>{});
}

}  // namespace pawl::ledger
