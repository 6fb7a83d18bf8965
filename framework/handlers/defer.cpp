#include "pawl/defer.hpp"

#include <stdexcept>

#include "handlers/pqxx_parameters.hpp"
#include "postgres/frame.hpp"

namespace pawl {

void defer(pqxx::dbtransaction& tx, std::string_view sql, const pqxx::params& parameters) {
  auto* frame = dynamic_cast<postgres::Frame*>(&tx);
  if (frame == nullptr) {
    throw std::invalid_argument(
        "pawl::defer takes the transaction that the handler was given, not a subtransaction: what "
        "it queues runs at the end of the message");
  }
  postgres::Parameters copy;
  handlers::add_parameters(copy, parameters);
  frame->defer(sql, std::move(copy));
}

}  // namespace pawl
