#pragma once

#include <fmt/format.h>

#include <atomic>
#include <cstddef>
#include <string>

namespace pawl::handlers {

/// A name on the server that no other statement of this process has: names are per session, and two
/// handlers may carry the same label.
[[nodiscard]] inline std::string next_sql_name() {
  static std::atomic<unsigned> next_number{0};
  return fmt::format("pawl_sql_{}", next_number++);
}

/// What errors call a handler's statement.
[[nodiscard]] inline std::string sql_label(const std::string& handler, std::size_t index) {
  return fmt::format("handler {}, statement {}", handler, index + 1);
}

}  // namespace pawl::handlers
