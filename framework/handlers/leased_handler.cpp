#include "handlers/leased_handler.hpp"

#include <stdexcept>

namespace pawl::handlers {

const std::string& LeasedHandler::remote() const {
  static const std::string unknown;
  return unknown;
}

Found LeasedHandler::reconcile(Lease& /*lease*/, const Message& /*message*/) const {
  return Found::unknown();
}

void LeasedHandler::record(pqxx::dbtransaction& /*transaction*/, const Message& /*message*/,
                           const Response& /*response*/) const {}

Response LeasedHandler::apply(postgres::Frame& /*frame*/, const Message& /*message*/,
                              message::JsonView& /*json*/) const {
  throw std::logic_error("a handler of external calls runs under a lease, never in a transaction");
}

}  // namespace pawl::handlers
