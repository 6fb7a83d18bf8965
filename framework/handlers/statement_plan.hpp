#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "postgres/parameters.hpp"
#include "postgres/statement.hpp"

namespace pawl::handlers {

/// The statements that apply one message, in order. Reused from message to message: clear() keeps
/// the memory. One thread.
class StatementPlan {
 public:
  struct Step {
    const postgres::Statement* statement = nullptr;
    std::shared_ptr<const postgres::Statement> owned;  ///< null: it outlives the plan
    postgres::Parameters parameters;
  };

  void clear() { used_ = 0; }

  /// `statement` outlives the plan. Returns its parameters, empty, to be filled.
  postgres::Parameters& add(const postgres::Statement& statement) {
    return next(&statement, nullptr);
  }
  postgres::Parameters& add(std::shared_ptr<const postgres::Statement> statement) {
    const auto* address = statement.get();
    return next(address, std::move(statement));
  }

  /// Removes the last one.
  void take_back() { --used_; }

  /// Of all parameters.
  [[nodiscard]] std::size_t bytes() const {
    std::size_t sum = 0;
    for (std::size_t i = 0; i < used_; ++i)
      sum += steps_[i].parameters.bytes();
    return sum;
  }

  [[nodiscard]] std::span<Step> steps() { return std::span(steps_).first(used_); }

 private:
  postgres::Parameters& next(const postgres::Statement* statement,
                             std::shared_ptr<const postgres::Statement> owned) {
    if (used_ == steps_.size())
      steps_.emplace_back();
    auto& step = steps_[used_++];
    step.statement = statement;
    step.owned = std::move(owned);
    step.parameters.clear();
    return step.parameters;
  }

  std::vector<Step> steps_;
  std::size_t used_ = 0;
};

}  // namespace pawl::handlers
