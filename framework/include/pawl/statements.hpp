#pragma once

#include <cstdint>
#include <optional>
#include <pqxx/params>
#include <string_view>

namespace pawl {

/// Collects the statements that apply one message. Valid only during the call of the
/// StatementFunction that receives it, on one thread.
///
///   app.statement_handler("bonus", [](pawl::Statements& statements, const pawl::Message& message)
///   {
///     statements.add("INSERT INTO bonus (payload) VALUES ($1)", pqxx::params{message.value()});
///   });
class Statements {
 public:
  Statements() = default;
  virtual ~Statements() = default;
  Statements(const Statements&) = delete;
  Statements& operator=(const Statements&) = delete;

  /// Queues one statement with $1, $2, ..., which runs after the statements before it. pawl
  /// prepares it once per connection, so pass values as `parameters`. `expect_rows`: the message
  /// fails unless the statement affects (a query: returns) exactly that many rows. pawl sends the
  /// message alone if the text contains WITH, or is not a SELECT, INSERT, UPDATE, or DELETE.
  ///
  /// Throws PermanentError for a text that is not one statement, for a statement that ends or
  /// outlives the message's transaction, and for more than 65535 parameters. Throws
  /// std::invalid_argument for a text parameter with a NUL byte, which PostgreSQL's text cannot
  /// contain.
  void add(std::string_view sql, const pqxx::params& parameters = {},
           std::optional<std::uint64_t> expect_rows = std::nullopt) {
    do_add(sql, parameters, expect_rows);
  }

 private:
  virtual void do_add(std::string_view sql, const pqxx::params& parameters,
                      std::optional<std::uint64_t> expect_rows) = 0;
};

}  // namespace pawl
