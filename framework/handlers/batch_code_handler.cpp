#include "handlers/batch_code_handler.hpp"

#include <fmt/format.h>

#include <stdexcept>

#include "handlers/handler_statement.hpp"
#include "text/count.hpp"

namespace pawl::handlers {

Response BatchCodeHandler::apply(postgres::Frame& frame, const Message& message,
                                 message::JsonView& /*json*/) const {
  const BatchColumns none;
  auto responses = apply_batch(frame, {{&message, 1}, none, {}});
  return responses.empty() ? std::nullopt : std::move(responses.front());
}

void BatchCodeHandler::collect(const Message& /*message*/, message::JsonView& /*json*/,
                               BatchColumns& /*columns*/) const {}

std::vector<Response> BatchCodeHandler::apply_batch(postgres::Frame& frame,
                                                    const BatchMessages& batch) const {
  frame.runs_code();
  auto responses = function_(frame, batch.messages);
  if (!responses.empty() && responses.size() != batch.messages.size()) {
    throw std::logic_error(fmt::format(
        "{} returned {} for {}. Return one for each, in their order, or none", handler_text(label_),
        texts::counted(std::ssize(responses), "response", "responses"),
        texts::counted(std::ssize(batch.messages), "message", "messages")));
  }
  return responses;
}

}  // namespace pawl::handlers
