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

/// What runs between the claim and the advance. Immutable after construction; called by all
/// workers.
class Handler {
 public:
  virtual ~Handler() = default;

  /// Applies the message in the frame, or defers statements that travel with its COMMIT. Throws to
  /// roll the message back.
  virtual Response apply(postgres::Frame& frame, const Message& message,
                         message::JsonView& json) const = 0;

  /// Empty for code.
  [[nodiscard]] virtual std::vector<DescribedStatement> statements() const { return {}; }
};

}  // namespace pawl::handlers
