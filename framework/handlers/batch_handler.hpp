#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "handlers/handler.hpp"
#include "postgres/array_elements.hpp"

namespace pawl::handlers {

/// What a batch handler took from the messages: one column a value, one element a message.
using BatchColumns = std::vector<postgres::ArrayElements>;

/// The messages that a batch handler applies, in the log's order, without duplicates.
struct BatchMessages {
  std::span<const Message> messages;
  const BatchColumns& columns;
  /// Of the messages among all that were collected into the columns.
  std::span<const std::uint32_t> places;
};

/// Applies many messages of one partition in one transaction. As a Handler it takes them one at a
/// time, by the same code: when they must be told apart, and in replays.
class BatchHandler : public Handler {
 public:
  /// Takes from a message what apply_batch() needs of it, while its JSON is at hand. Throws for a
  /// message that cannot be applied, and may leave what it had begun.
  virtual void collect(const Message& message, message::JsonView& json,
                       BatchColumns& columns) const = 0;

  /// As apply(); all of them or none.
  virtual void apply_batch(postgres::Frame& frame, const BatchMessages& batch) const = 0;

  [[nodiscard]] const BatchHandler* as_batch_handler() const final { return this; }
};

}  // namespace pawl::handlers
