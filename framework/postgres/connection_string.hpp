#pragma once

#include <libpq-fe.h>

#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace pawl::postgres {

struct ConnectionOptionsDeleter {
  void operator()(PQconninfoOption* options) const { PQconninfoFree(options); }
};
/// What libpq understands of a connection string; ends with one that has no keyword.
using ConnectionOptions = std::unique_ptr<PQconninfoOption, ConnectionOptionsDeleter>;

/// Why no server can ever be reached by a text as libpq connection URI or string, or nullopt. Both
/// texts are for people and quote nothing of it: libpq's own do, and a password that is not encoded
/// may stand in any part (PostgreSQL manual, 34.1.1 "Connection Strings").
struct ConnectionStringProblem {
  std::string what;
  std::string fix;
};
[[nodiscard]] std::optional<ConnectionStringProblem> problem_of(const std::string& url);

/// Whether a connection string says a password itself, or a file of passwords.
[[nodiscard]] bool names_password(const std::string& url);

/// Whether the value of a libpq parameter key word may be shown to people: it is no secret whatever
/// it holds.
[[nodiscard]] bool may_show_value(std::string_view keyword);

/// libpq's report of a connection that failed, on one line, without values that may hold a secret:
/// whatever it quotes of an option other than hosts, ports, names and files comes back as "***".
[[nodiscard]] std::string connect_report(PGconn* connection);

}  // namespace pawl::postgres
