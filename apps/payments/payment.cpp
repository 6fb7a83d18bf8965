#include "payment.hpp"

#include <limits>
#include <nlohmann/json.hpp>
#include <pawl/errors.hpp>

namespace payments {
namespace {

std::int64_t parse_amount(const nlohmann::json& json) {
  // A number with a fraction or beyond 64 bits would become another amount.
  const bool fits = json.is_number_integer() &&
                    (!json.is_number_unsigned() ||
                     json.get<std::uint64_t>() <= std::numeric_limits<std::int64_t>::max());
  if (!fits) {
    throw pawl::PermanentError(
        "/amount is not a 64-bit integer. The producer must send the smallest unit of the "
        "currency");
  }
  return json.get<std::int64_t>();
}

}  // namespace

Payment Payment::parse(std::string_view json) {
  // Exceptions of the parser quote the payload, which must not be in a log.
  const auto parsed = nlohmann::json::parse(json, nullptr, false);
  if (!parsed.is_object()) {
    throw pawl::PermanentError("the value is not a JSON object. Fix the producer");
  }
  const auto account = parsed.find("account");
  const auto amount = parsed.find("amount");
  if (account == parsed.end() || !account->is_string() || amount == parsed.end()) {
    throw pawl::PermanentError(
        "the payment lacks \"account\" (a string) or \"amount\". Fix the producer");
  }
  return {account->get<std::string>(), parse_amount(*amount)};
}

}  // namespace payments
