#include "handlers/statement_handler.hpp"

#include <algorithm>
#include <mutex>
#include <utility>

#include "handlers/pqxx_parameters.hpp"
#include "handlers/sql_text.hpp"
#include "pawl/errors.hpp"

namespace pawl::handlers {
namespace {

using Statement = std::shared_ptr<const HandlerStatement>;

/// Hands each statement that the function adds to `take`, with its index.
template <typename Take>
class Taker final : public Statements {
 public:
  Taker(StatementTexts& texts, Take take) : texts_(texts), take_(std::move(take)) {}

 private:
  void do_add(std::string_view sql, const pqxx::params& parameters,
              std::optional<std::uint64_t> expect_rows) override {
    const auto index = added_++;
    try {
      take_(texts_.find(sql, expect_rows), parameters, index);
    } catch (const SqlTextError& error) {
      throw UnsuitableStatement(said_name(index), error.what());
    }
  }

  StatementTexts& texts_;
  Take take_;
  std::size_t added_ = 0;
};

/// Part of it, and keeps all of it alive.
std::shared_ptr<const postgres::Statement> part(Statement whole, const postgres::Statement& part) {
  return {std::move(whole), &part};
}

}  // namespace

std::shared_ptr<const HandlerStatement> StatementTexts::known(
    std::string_view sql, std::optional<std::uint64_t> expect_rows) const {
  const auto found = by_text_.find(sql);
  if (found == by_text_.end())
    return nullptr;
  const auto same = std::ranges::find(found->second, expect_rows, &HandlerStatement::expect_rows);
  return same == found->second.end() ? nullptr : *same;
}

std::shared_ptr<const HandlerStatement> StatementTexts::find(
    std::string_view sql, std::optional<std::uint64_t> expect_rows) {
  {
    const std::shared_lock lock(mutex_);
    if (auto statement = known(sql, expect_rows))
      return statement;
  }
  auto text = SqlText::parse_numbered(sql);
  const std::scoped_lock lock(mutex_);
  if (auto statement = known(sql, expect_rows))
    return statement;
  if (size_ >= kMost) {
    return std::make_shared<const HandlerStatement>(std::move(text), expect_rows, schema_,
                                                    Prepared::kNever);
  }
  auto statement = std::make_shared<const HandlerStatement>(std::move(text), expect_rows, schema_);
  by_text_[std::string(sql)].push_back(statement);
  ++size_;
  return statement;
}

Response StatementHandler::apply(postgres::Frame& frame, const Message& message,
                                 message::JsonView& /*json*/) const {
  Taker taker(texts_, [&](Statement statement, const pqxx::params& from, std::size_t index) {
    postgres::Parameters parameters;
    add_parameters(parameters, from);
    const auto& plain = statement->counted_by_reader();
    const auto expect_rows = statement->expect_rows();
    frame.defer(part(std::move(statement), plain), std::move(parameters), expect_rows,
                said_name(index));
  });
  function_(taker, message);
  return std::nullopt;
}

bool StatementHandler::plan(StatementPlan& plan, const Message& message,
                            message::JsonView& /*json*/) const {
  bool complete = true;
  Taker taker(texts_, [&](Statement statement, const pqxx::params& from, std::size_t) {
    const auto* raising = statement->counted_by_server();
    if (raising == nullptr) {
      complete = false;
      return;
    }
    auto& parameters = plan.add(part(std::move(statement), *raising));
    try {
      add_parameters(parameters, from);
    } catch (...) {  // which the function may catch, and go on
      plan.take_back();
      throw;
    }
  });
  function_(taker, message);
  return complete;
}

}  // namespace pawl::handlers
