#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "handlers/handler.hpp"
#include "postgres/array_elements.hpp"

namespace pawl::handlers {

/// What a batch handler took from the messages: one column a value, one element a message.
using BatchColumns = std::vector<postgres::ArrayElements>;

/// Under which keys the messages of a batch are claimed.
struct BatchClaim {
  std::int32_t scope = 0;
  /// PostgreSQL's array of them, one a message; NULL for a message without.
  std::string keys;
};

/// The messages that a batch handler applies, in the log's order, without duplicates.
struct BatchMessages {
  std::span<const Message> messages;
  const BatchColumns& columns;
  /// Of the messages among all that were collected into the columns.
  std::span<const std::uint32_t> places;
  /// Where the handler stores_responses(); nullptr: the transaction claimed the one message's key.
  const BatchClaim* claim = nullptr;
};

/// Applies many messages of one partition in one transaction. As a Handler it takes them one at a
/// time, by the same code: when they must be told apart, and in replays.
class BatchHandler : public Handler {
 public:
  /// Takes from a message what apply_batch() needs of it, while its JSON is at hand. Throws for a
  /// message that cannot be applied, and may leave what it had begun.
  virtual void collect(const Message& message, message::JsonView& json,
                       BatchColumns& columns) const = 0;

  /// As apply(); all of them or none. Returns a response for each, in their order, or nothing.
  virtual std::vector<Response> apply_batch(postgres::Frame& frame,
                                            const BatchMessages& batch) const = 0;

  /// Its statements store the responses, and need BatchMessages::claim.
  [[nodiscard]] virtual bool stores_responses() const { return false; }

  [[nodiscard]] const BatchHandler* as_batch_handler() const final { return this; }
};

}  // namespace pawl::handlers
