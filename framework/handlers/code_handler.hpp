#pragma once

#include "handlers/handler.hpp"

namespace pawl::handlers {

/// A C++ function that the program registered by name.
class CodeHandler final : public Handler {
 public:
  explicit CodeHandler(HandlerFunction function) : function_(std::move(function)) {}
  Response apply(postgres::Frame& frame, const Message& message,
                 message::JsonView& json) const override;

 private:
  HandlerFunction function_;
};

}  // namespace pawl::handlers
