#pragma once

#include <optional>
#include <string>

#include "message/template.hpp"
#include "postgres/parameter_types.hpp"

namespace pawl::postgres {
class Session;
}

namespace pawl::handlers {

struct DescribedStatement;
class Router;

/// How the value of a placeholder reaches the parameter of a statement.
enum class BoundAs {
  kText,
  kJson,  ///< text without a byte order mark, which PostgreSQL refuses in json and jsonb
  kBytes,
  kByteArray,
  kRefused,
};

/// A value of the record's own (its key, its value, a header) is bytes, and into bytea it goes as
/// they are. Text that JSON gives has more than one meaning there, and PostgreSQL would read it in
/// bytea's escape format: `\` and `\x` at its beginning make other bytes of it.
[[nodiscard]] BoundAs binding_of(const message::Template& value, postgres::ParameterType type);

/// Whether it gives bytes of the record's own, which need not be text.
[[nodiscard]] bool may_be_bytes(const message::Template& value);

/// Why a parameter of the statement cannot be bound, with what to write instead; nullopt: all can.
[[nodiscard]] std::optional<std::string> binding_problem(const DescribedStatement& statement,
                                                         const postgres::ParameterTypes& types);

/// Throws for a statement that has one: the database has changed since require_bindable(). `name`:
/// postgres::Error::statement().
[[noreturn]] void throw_unbindable(const DescribedStatement& statement, const std::string& name,
                                   const postgres::ParameterTypes& types);

/// Asks the server of every statement of the configuration, and throws FatalError for the first
/// that has a binding_problem(). What the server does not understand says so when it runs.
void require_bindable(postgres::Session& session, const Router& router);

}  // namespace pawl::handlers
