#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <shared_mutex>
#include <string>
#include <string_view>
#include <vector>

#include "handlers/handler.hpp"
#include "handlers/handler_statement.hpp"

namespace pawl::handlers {

/// The statements whose texts code gives, message by message: each text is looked at once. Any
/// thread.
class StatementTexts {
 public:
  /// So many are kept, and prepared by the sessions; more come from code that writes values into
  /// its texts.
  static constexpr std::size_t kMost = 1000;

  explicit StatementTexts(std::string schema) : schema_(std::move(schema)) {}

  /// Throws SqlTextError for one that a handler may not run.
  std::shared_ptr<const HandlerStatement> find(std::string_view sql,
                                               std::optional<std::uint64_t> expect_rows);

 private:
  using Statements = std::vector<std::shared_ptr<const HandlerStatement>>;  // by expect_rows

  std::shared_ptr<const HandlerStatement> known(std::string_view sql,
                                                std::optional<std::uint64_t> expect_rows) const;

  std::string schema_;
  mutable std::shared_mutex mutex_;
  std::map<std::string, Statements, std::less<>> by_text_;
  std::size_t size_ = 0;
};

/// A C++ function that says by which statements a message is applied.
class StatementHandler final : public Handler, private StatementPlanner {
 public:
  /// `schema` is pawl's.
  StatementHandler(StatementFunction function, const std::string& schema)
      : function_(std::move(function)), texts_(schema) {}

  Response apply(postgres::Frame& frame, const Message& message,
                 message::JsonView& json) const override;
  [[nodiscard]] const StatementPlanner* planner() const override { return this; }

 private:
  [[nodiscard]] bool plan(StatementPlan& plan, const Message& message,
                          message::JsonView& json) const override;

  StatementFunction function_;
  mutable StatementTexts texts_;
};

}  // namespace pawl::handlers
