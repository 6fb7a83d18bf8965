#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "postgres/parameters.hpp"
#include "postgres/request.hpp"
#include "postgres/statement.hpp"

namespace pawl::handlers {

/// The statements that apply one message, in order. Reused from message to message: clear() keeps
/// the memory. One thread.
class StatementPlan {
 public:
  struct Step {
    postgres::Request request;
    std::shared_ptr<const postgres::Statement> owned;  ///< null: its statement outlives the plan
  };

  void clear() { used_ = 0; }

  /// `statement` outlives the plan. Returns its parameters, empty, to be filled.
  postgres::Parameters& add(const postgres::Statement& statement) {
    return next(statement, nullptr);
  }
  postgres::Parameters& add(std::shared_ptr<const postgres::Statement> statement) {
    const auto& named = *statement;
    return next(named, std::move(statement));
  }

  /// Removes the last one.
  void take_back() { --used_; }

  /// Of all parameters.
  [[nodiscard]] std::size_t bytes() const {
    std::size_t sum = 0;
    for (std::size_t i = 0; i < used_; ++i)
      sum += steps_[i].request.parameters.bytes();
    return sum;
  }

  [[nodiscard]] std::span<Step> steps() { return std::span(steps_).first(used_); }

 private:
  postgres::Parameters& next(const postgres::Statement& statement,
                             std::shared_ptr<const postgres::Statement> owned) {
    if (used_ == steps_.size())
      steps_.emplace_back();
    auto& step = steps_[used_++];
    step.owned = std::move(owned);
    return step.request.to(statement);
  }

  std::vector<Step> steps_;
  std::size_t used_ = 0;
};

}  // namespace pawl::handlers
