#include "pawl/defer.hpp"

#include <stdexcept>

#include "postgres/frame.hpp"

namespace pawl {

void defer(pqxx::dbtransaction& tx, std::string_view sql, const pqxx::params& parameters) {
  auto* frame = dynamic_cast<postgres::Frame*>(&tx);
  if (frame == nullptr) {
    throw std::invalid_argument(
        "pawl::defer takes the transaction that the handler was given, not a subtransaction: what "
        "it queues runs at the end of the message");
  }
  const auto given = parameters.make_c_params();
  postgres::Parameters copy;
  for (std::size_t i = 0; i < given.values.size(); ++i) {
    if (given.values[i] == nullptr) {
      copy.add_null();
      continue;
    }
    const std::string_view bytes(given.values[i], static_cast<std::size_t>(given.lengths[i]));
    if (given.formats[i] == pqxx::format::binary) {
      copy.add_bytes(bytes);
    } else {
      copy.add_text(bytes);
    }
  }
  frame->defer(sql, std::move(copy));
}

}  // namespace pawl
