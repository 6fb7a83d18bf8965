#pragma once

#include <string>
#include <vector>

#include "handlers/statement_plan.hpp"
#include "message/json.hpp"
#include "message/template.hpp"
#include "pawl/handler.hpp"
#include "pawl/message.hpp"
#include "pawl/options.hpp"
#include "postgres/frame.hpp"

namespace pawl::handlers {

/// A statement that a handler will run, for `pawl check` to describe against the database.
struct DescribedStatement {
  std::string label;  ///< names it in messages: "handler[0].sql[1] (payment)"
  std::string sql;
  std::size_t parameters = 0;
  SourceLocation where = {};  ///< in the configuration; empty: it is not written there
  /// The statement as it was written, where what it returns is stored as the response, with its
  /// parameters, and how many columns that must have. Empty: it gives none.
  std::string response = {};
  std::size_t own_parameters = 0;
  int columns = 0;
  /// What its first parameters are rendered from; they live as long as the handler.
  std::vector<const message::Template*> values = {};

  /// Where it is written, for an error: "pawl.toml:12: handler[0].sql[1] (payment)".
  [[nodiscard]] std::string place() const { return where.empty() ? label : where + ": " + label; }
};

/// Says ahead which statements apply a message: they depend on nothing but the message, need no
/// answers meanwhile and cannot end the transaction. So messages may travel to the server together.
class StatementPlanner {
 public:
  virtual ~StatementPlanner() = default;
  /// Adds them to the plan. False: this message needs an answer, and goes alone. Throws what
  /// apply() would throw for it.
  [[nodiscard]] virtual bool plan(StatementPlan& plan, const Message& message,
                                  message::JsonView& json) const = 0;
};

class BatchHandler;
class LeasedHandler;

/// What runs between the claim and the advance. Immutable after construction; called by all
/// workers.
class Handler {
 public:
  virtual ~Handler() = default;

  /// Applies the message in the frame, or defers statements that travel with its COMMIT. Throws to
  /// roll the message back.
  virtual Response apply(postgres::Frame& frame, const Message& message,
                         message::JsonView& json) const = 0;

  /// This handler, if statements that it says ahead are all that apply() runs; else nullptr.
  [[nodiscard]] virtual const StatementPlanner* planner() const { return nullptr; }

  /// Empty for code.
  [[nodiscard]] virtual std::vector<DescribedStatement> statements() const { return {}; }

  /// This handler, if its effect is outside of the database; else nullptr.
  [[nodiscard]] virtual const LeasedHandler* as_leased_handler() const { return nullptr; }

  /// This handler, if it can take many messages in one transaction; else nullptr.
  [[nodiscard]] virtual const BatchHandler* as_batch_handler() const { return nullptr; }
};

}  // namespace pawl::handlers
