#pragma once

#include <string>
#include <utility>
#include <vector>

#include "handlers/batch_handler.hpp"

namespace pawl::handlers {

/// A C++ function for batches that the program registered by name.
class BatchCodeHandler final : public BatchHandler {
 public:
  /// `label` names it in errors.
  BatchCodeHandler(std::string label, BatchFunction function)
      : label_(std::move(label)), function_(std::move(function)) {}

  Response apply(postgres::Frame& frame, const Message& message,
                 message::JsonView& json) const override;
  void collect(const Message& message, message::JsonView& json,
               BatchColumns& columns) const override;
  std::vector<Response> apply_batch(postgres::Frame& frame,
                                    const BatchMessages& batch) const override;

 private:
  std::string label_;
  BatchFunction function_;
};

}  // namespace pawl::handlers
