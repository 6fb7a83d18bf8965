#pragma once

#include <exception>
#include <string>

#include "postgres/sqlstate.hpp"

namespace pawl::engine {

/// Why one try of a message failed, in the terms that decide what happens next.
struct Failure {
  postgres::FailureClass kind = postgres::FailureClass::kMessage;
  bool permanent = false;  ///< trying again cannot help
  bool in_doubt = false;   ///< the COMMIT may have been stored
  std::string sqlstate;    ///< empty when the failure is not the database's
  std::string text;        ///< for people; holds no row values of PostgreSQL's DETAIL
};

/// Explains an exception that left the frame. `session_alive`: without a connection nothing that a
/// handler throws says anything about the message.
[[nodiscard]] Failure explain(const std::exception_ptr& error, bool session_alive);

}  // namespace pawl::engine
