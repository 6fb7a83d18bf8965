#include "handlers/pqxx_parameters.hpp"

#include <fmt/format.h>

#include <cstddef>
#include <pqxx/pqxx>
#include <string_view>

#include "handlers/sql_text.hpp"
#include "pawl/errors.hpp"

namespace pawl::handlers {

void add_parameters(postgres::Parameters& to, const pqxx::params& from) {
  const auto given = from.make_c_params();
  if (given.values.size() > SqlText::kMaxParameters) {
    throw PermanentError(fmt::format(
        "a statement has {} parameters, but PostgreSQL's limit is {}. Use arrays (unnest) instead",
        given.values.size(), SqlText::kMaxParameters));
  }
  for (std::size_t i = 0; i < given.values.size(); ++i) {
    if (given.values[i] == nullptr) {
      to.add_null();
      continue;
    }
    const std::string_view bytes(given.values[i], static_cast<std::size_t>(given.lengths[i]));
    if (given.formats[i] == pqxx::format::binary) {
      to.add_bytes(bytes);
    } else {
      to.add_text(bytes);
    }
  }
}

}  // namespace pawl::handlers
