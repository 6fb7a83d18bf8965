#pragma once

#include <pqxx/params>

#include "postgres/parameters.hpp"

namespace pawl::handlers {

/// Copies libpqxx's parameters behind those that are there. Throws std::invalid_argument for a text
/// with a NUL byte.
void add_parameters(postgres::Parameters& to, const pqxx::params& from);

}  // namespace pawl::handlers
