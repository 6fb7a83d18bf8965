#pragma once

#include <string>
#include <string_view>

namespace pawl::texts {

/// "sql[0]: no such account": a cause with its location, for people. Only the cause if there is no
/// location.
[[nodiscard]] inline std::string located(std::string_view location, std::string_view cause) {
  std::string text(location);
  if (!text.empty())
    text += ": ";
  return text.append(cause);
}

}  // namespace pawl::texts
