#include "engine/handler_call.hpp"

#include <fmt/format.h>

#include "postgres/error.hpp"

namespace pawl::engine {

Response call_handler(postgres::Session& session, const std::function<Response()>& handler) {
  try {
    return handler();
  } catch (const std::exception& error) {
    if (!session.alive() || session.in_transaction())
      throw;
    throw postgres::Error(
        std::string(postgres::kTransactionEndedState),
        fmt::format("the handler ended the transaction itself and then failed: {}", error.what()));
  }
}

void tell_duplicate(const Observers& observers, const handlers::Binding& binding,
                    const Message& message, const Response& response) {
  if (binding.on_duplicate == nullptr)
    return;
  try {
    (*binding.on_duplicate)(message, response);
  } catch (const std::exception& error) {
    const auto text =
        fmt::format("on_duplicate of handler {} threw: {}; the duplicate is passed all the same",
                    binding.label, error.what());
    auto event = event_of(Step::kWarning, message);
    event.detail = text;
    observers.emit(event);
  }
}

}  // namespace pawl::engine
