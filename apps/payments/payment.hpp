#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace payments {

/// The content of one message: `{"account": "account-0042", "amount": 1250}`.
struct Payment {
  std::string account;
  std::int64_t amount = 0;  ///< in the currency's smallest unit; negative takes money out

  /// Throws pawl::PermanentError, because a retry cannot turn another text into a payment.
  static Payment parse(std::string_view json);
};

}  // namespace payments
