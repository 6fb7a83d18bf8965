#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "postgres/parameters.hpp"
#include "postgres/request.hpp"
#include "postgres/session.hpp"
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

  /// `session`: where they are to run; nullptr: nowhere, they are only shown.
  void clear(const postgres::Session* session) {
    session_ = session;
    used_ = 0;
  }
  [[nodiscard]] bool is_shown_only() const { return session_ == nullptr; }
  /// What the session takes the statement's parameters for; nullptr: it has not asked.
  [[nodiscard]] const postgres::ParameterTypes* known_types(
      const postgres::Statement& statement) const {
    return session_ == nullptr ? nullptr : session_->known_types(statement);
  }

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

  const postgres::Session* session_ = nullptr;
  std::vector<Step> steps_;
  std::size_t used_ = 0;
};

}  // namespace pawl::handlers
