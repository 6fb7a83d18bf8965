#pragma once

#include "handlers/batch_handler.hpp"

namespace pawl::handlers {

/// A C++ function for batches that the program registered by name.
class BatchCodeHandler final : public BatchHandler {
 public:
  explicit BatchCodeHandler(BatchFunction function) : function_(std::move(function)) {}

  Response apply(postgres::Frame& frame, const Message& message,
                 message::JsonView& json) const override;
  void collect(const Message& message, message::JsonView& json,
               BatchColumns& columns) const override;
  void apply_batch(postgres::Frame& frame, const BatchMessages& batch) const override;

 private:
  BatchFunction function_;
};

}  // namespace pawl::handlers
