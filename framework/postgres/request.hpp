#pragma once

#include "postgres/parameters.hpp"
#include "postgres/statement.hpp"

namespace pawl::postgres {

/// A statement with what it is bound to, named in one place, so that no statement travels with
/// another's parameters. Reusable: to() keeps the memory. Not thread-safe; owned by one worker.
struct Request {
  const Statement* statement = nullptr;  ///< outlives the request
  Parameters parameters = {};

  /// Makes it a request of `other`. Returns its parameters, empty, to be filled.
  Parameters& to(const Statement& other) {
    statement = &other;
    parameters.clear();
    return parameters;
  }
};

}  // namespace pawl::postgres
