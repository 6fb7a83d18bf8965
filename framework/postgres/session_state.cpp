#include "postgres/session_state.hpp"

#include <fmt/format.h>

namespace pawl::postgres {

const std::string& session_state() {
  static const std::string expression = [] {
    std::string settings;
    for (const auto name : kVerifiedSettings)
      settings += fmt::format(", current_setting('{}', true)", name);
    return fmt::format("concat_ws('|'{})", settings);
  }();
  return expression;
}

}  // namespace pawl::postgres
