#pragma once

#include <string>
#include <vector>

#include "message/json.hpp"
#include "pawl/handler.hpp"
#include "pawl/message.hpp"
#include "postgres/frame.hpp"

namespace pawl::handlers {

/// A statement that a handler will run, for `pawl check` to describe against the database.
struct DescribedStatement {
  std::string label;  ///< names it in messages: "handler payment, statement 2"
  std::string sql;
  std::size_t parameters = 0;
};

/// Statements whose number and texts depend on nothing, which need no answers meanwhile and cannot
/// end the transaction: messages that are applied by them may travel to the server together.
class FixedStatements {
 public:
  virtual ~FixedStatements() = default;
  [[nodiscard]] virtual std::size_t count() const = 0;
  [[nodiscard]] virtual const postgres::Statement& statement(std::size_t index) const = 0;
  /// Throws message::MessageError when the message does not have what a statement needs.
  virtual void fill(std::size_t index, postgres::Parameters& parameters, const Message& message,
                    message::JsonView& json) const = 0;
};
class BatchHandler;

/// What runs between the claim and the advance. Immutable after construction; called by all
/// workers.
class Handler {
 public:
  virtual ~Handler() = default;

  /// Applies the message in the frame, or defers statements that travel with its COMMIT. Throws to
  /// roll the message back.
  virtual Response apply(postgres::Frame& frame, const Message& message,
                         message::JsonView& json) const = 0;

  /// What apply() defers, where that is all it does; else nullptr.
  [[nodiscard]] virtual const FixedStatements* fixed_statements() const { return nullptr; }

  /// Empty for code.
  [[nodiscard]] virtual std::vector<DescribedStatement> statements() const { return {}; }

  /// Itself where it can take many messages in one transaction; else nullptr.
  [[nodiscard]] virtual const BatchHandler* as_batch_handler() const { return nullptr; }
};

}  // namespace pawl::handlers
