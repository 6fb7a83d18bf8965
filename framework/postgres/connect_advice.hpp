#pragma once

#include <string>
#include <string_view>

namespace pawl::postgres {

/// What to look at when a server refuses us, or we it, by libpq's words: "; look at ...", the
/// options with their names. Empty: the words say enough. `by_command`: the password came from
/// postgres.password_command. `server`: "HOST:PORT".
[[nodiscard]] std::string connect_advice(std::string_view report, bool by_command,
                                         const std::string& server);

/// Whether a report is of a server that answered, and refused us or was refused.
[[nodiscard]] bool is_answer(std::string_view report);

/// Whether connections fail with this report until an operator changes something: a password, a
/// role, a certificate, a grant, an option. Otherwise a later one may succeed, as after a restart
/// of the server.
[[nodiscard]] bool needs_correction(std::string_view report);

}  // namespace pawl::postgres
