#include "payment.hpp"

#include <limits>
#include <nlohmann/json.hpp>
#include <pawl/errors.hpp>

namespace payments {
namespace {

std::int64_t parse_amount(const nlohmann::json& json) {
  // A number with a fraction or beyond 64 bits would become another amount on its way.
  const bool fits = json.is_number_integer() &&
                    (!json.is_number_unsigned() ||
                     json.get<std::uint64_t>() <= std::numeric_limits<std::int64_t>::max());
  if (!fits) {
    throw pawl::PermanentError(
        "/amount is no 64-bit integer; the producer must send the smallest unit of the currency");
  }
  return json.get<std::int64_t>();
}

}  // namespace

Payment Payment::parse(std::string_view json) {
  // No exceptions from the parser: their texts quote the payload, which has no place in a log.
  const auto parsed = nlohmann::json::parse(json, nullptr, false);
  if (!parsed.is_object()) {
    throw pawl::PermanentError("the value is no JSON object; correct the producer");
  }
  const auto account = parsed.find("account");
  const auto amount = parsed.find("amount");
  if (account == parsed.end() || !account->is_string() || amount == parsed.end()) {
    throw pawl::PermanentError(
        "the payment lacks \"account\" (a string) or \"amount\"; correct the producer");
  }
  return {account->get<std::string>(), parse_amount(*amount)};
}

}  // namespace payments
