#pragma once

#include <libpq-fe.h>

#include <cstdint>
#include <vector>

#include "postgres/statement.hpp"

namespace pawl::postgres {

class Session;

/// Of a statement's parameter, as far as it decides how a value is bound. A domain is what it is
/// made of.
enum class ParameterType : std::uint8_t {
  kOther,
  kBytes,      ///< bytea
  kByteArray,  ///< bytea[]
  kJson,       ///< json, jsonb
  kJsonArray,  ///< json[], jsonb[]
};
/// In the order of the parameters.
using ParameterTypes = std::vector<ParameterType>;

/// Has the server say what it takes the parameters for: one round trip, and another where they are
/// of types that the database has defined. Prepares the statement where the session keeps it.
/// Throws Error.
[[nodiscard]] ParameterTypes describe_parameters(Session& session, const Statement& statement);

/// The same of an answer to Describe.
[[nodiscard]] ParameterTypes types_of_described(Session& session, const PGresult* described);

}  // namespace pawl::postgres
