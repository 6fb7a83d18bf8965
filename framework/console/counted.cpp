#include "console/counted.hpp"

#include <fmt/format.h>

namespace pawl::cli {

std::string grouped(std::int64_t number) {
  const auto digits = fmt::format("{}", number);
  const std::size_t sign = number < 0 ? 1 : 0;
  std::string result;
  for (std::size_t i = 0; i < digits.size(); ++i) {
    if (i > sign && (digits.size() - i) % 3 == 0)
      result += ',';
    result += digits[i];
  }
  return result;
}

std::string counted(std::int64_t number, const char* one, const char* many) {
  return fmt::format("{} {}", grouped(number), number == 1 ? one : many);
}

}  // namespace pawl::cli
