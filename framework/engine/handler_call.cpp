#include "engine/handler_call.hpp"

#include <fmt/format.h>

#include "dead_letters/store/dead_letters.hpp"
#include "engine/failure.hpp"
#include "handlers/handler_statement.hpp"
#include "postgres/error.hpp"

namespace pawl::engine {
namespace {

/// Of the exception that is being handled.
std::string what_was_thrown() {
  return explain(std::current_exception(), true).text;
}

}  // namespace

Response call_handler(postgres::Session& session, const std::function<Response()>& handler) {
  try {
    return handler();
  } catch (...) {
    if (!session.alive() || session.in_transaction())
      throw;
    throw postgres::Error(
        std::string(postgres::kTransactionEndedState),
        fmt::format("the handler ended the transaction and then failed: {}", what_was_thrown()));
  }
}

void require_fits(const handlers::Binding& binding, const Response& response) {
  if (!response || response->size() <= binding.max_response)
    return;
  throw Unfit(ledger::dead_reason::kPermanent,
              fmt::format("the response has {} bytes; idempotency.max_response allows {}",
                          response->size(), binding.max_response));
}

void tell_duplicate(const Observers& observers, const handlers::Binding& binding,
                    const Message& message, const Response& response) {
  if (binding.on_duplicate == nullptr)
    return;
  try {
    (*binding.on_duplicate)(message, response);
  } catch (...) {
    const auto text =
        fmt::format("on_duplicate of {} threw: {}. The duplicate is processed nevertheless",
                    handlers::handler_text(binding.label), what_was_thrown());
    auto event = event_of(Step::kWarning, message);
    event.warning = Warning::kCallbackFailed;
    event.message_offset = message.offset();
    event.handler = binding.label;
    event.detail = text;
    observers.emit(event);
  }
}

}  // namespace pawl::engine
