#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace payments {

/// What one message says: `{"account": "account-0042", "amount": 1250}`.
struct Payment {
  std::string account;
  std::int64_t amount = 0;  ///< in the currency's smallest unit; negative takes money out

  /// Throws pawl::PermanentError: a text that is no payment does not become one by trying again.
  static Payment parse(std::string_view json);
};

}  // namespace payments
