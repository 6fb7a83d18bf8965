#include "config/letter_advice.hpp"

#include <fmt/format.h>

#include "config/invocation.hpp"

namespace pawl {
namespace {

constexpr std::string_view kBegins = "; look at it: ";
constexpr std::string_view kCommand = " dlq show --config ";

}  // namespace

std::string letter_advice(const InvocationOptions& invocation, std::int64_t letter) {
  return fmt::format("{}{} {}", kBegins, command_text(invocation, "dlq show"), letter);
}

std::string_view without_letter_advice(std::string_view text) {
  const auto begin = text.rfind(kBegins);
  if (begin == std::string_view::npos || text.find(kCommand, begin) == std::string_view::npos)
    return text;
  return text.substr(0, begin);
}

}  // namespace pawl
