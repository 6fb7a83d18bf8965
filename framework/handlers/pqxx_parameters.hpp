#pragma once

#include <pqxx/params>

#include "postgres/parameters.hpp"

namespace pawl::handlers {

/// Copies libpqxx's parameters behind those that are there. Throws std::invalid_argument for a text
/// with a NUL byte, PermanentError for more than the protocol can count.
void add_parameters(postgres::Parameters& to, const pqxx::params& from);

}  // namespace pawl::handlers
