#pragma once

#include <string>
#include <string_view>

namespace pawl::postgres {

/// Where a password comes from, if not from the text of postgres.url.
struct PasswordSource {
  bool command = false;  ///< postgres.password_command
  /// The files that postgres.url names, for people; empty: none.
  std::string files = {};
};

/// " (of FILE, which pawl reads again at each connect, without a restart)"; empty: no file.
[[nodiscard]] std::string read_again(const PasswordSource& from);

/// What to look at when a server refuses us, or we it, by libpq's words: "; look at ...", the
/// options with their names. Empty: the words say enough. `server`: "HOST:PORT".
[[nodiscard]] std::string connect_advice(std::string_view report, const PasswordSource& from,
                                         const std::string& server);

/// Whether a report is of a server that answered, and refused us or was refused.
[[nodiscard]] bool is_answer(std::string_view report);

/// What an operator must fix before connections that fail with this report can succeed: a password,
/// a role, a certificate, a grant, an option. Equal for reports with the same fix. Empty: a later
/// connection may succeed without that, as after a restart of the server.
[[nodiscard]] std::string correction(std::string_view report);

}  // namespace pawl::postgres
