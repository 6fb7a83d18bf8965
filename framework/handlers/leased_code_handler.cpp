#include "handlers/leased_code_handler.hpp"

namespace pawl::handlers {

Response LeasedCodeHandler::call(Lease& lease, const Message& message) const {
  return functions_.call(lease, message);
}

Found LeasedCodeHandler::reconcile(Lease& lease, const Message& message) const {
  return functions_.reconcile(lease, message);
}

void LeasedCodeHandler::record(pqxx::dbtransaction& transaction, const Message& message,
                               const Response& response) const {
  functions_.record(transaction, message, response);
}

}  // namespace pawl::handlers
