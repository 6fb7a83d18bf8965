#pragma once

#include <string>
#include <string_view>

namespace pawl::postgres {

/// Whether a text of the application's calls pawl.publish, as far as its words tell: what a
/// function or a trigger does within it they do not say.
[[nodiscard]] inline bool calls_publish(std::string_view sql) {
  return sql.find(".publish") != std::string_view::npos;
}

/// A statement that is prepared once a session, on first use, under its name. Lives as long as the
/// sessions that use it; names are unique within a process.
struct Statement {
  std::string name;
  std::string text;
  /// It writes to the outbox: whoever publishes is told once that is committed.
  bool publishes = false;
  /// What it must be, for the error that says that it is not (42601); empty: that says enough.
  std::string rule = {};
};

}  // namespace pawl::postgres
