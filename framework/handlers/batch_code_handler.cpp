#include "handlers/batch_code_handler.hpp"

namespace pawl::handlers {

Response BatchCodeHandler::apply(postgres::Frame& frame, const Message& message,
                                 message::JsonView& /*json*/) const {
  function_(frame, {&message, 1});
  return std::nullopt;
}

void BatchCodeHandler::collect(const Message& /*message*/, message::JsonView& /*json*/,
                               BatchColumns& /*columns*/) const {}

void BatchCodeHandler::apply_batch(postgres::Frame& frame, const BatchMessages& batch) const {
  function_(frame, batch.messages);
}

}  // namespace pawl::handlers
