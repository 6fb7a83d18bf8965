#include "handlers/code_handler.hpp"

namespace pawl::handlers {

Response CodeHandler::apply(postgres::Frame& frame, const Message& message,
                            message::JsonView& /*json*/) const {
  frame.runs_code();
  return function_(frame, message);
}

}  // namespace pawl::handlers
