#pragma once

// A StatementFunction, which lists the statements of a message.
//
//   #include <pawl/message.hpp>
//   #include <pawl/statements.hpp>
//   #include <pqxx/pqxx>
//
//   void apply_payment(pawl::Statements& statements, const pawl::Message& message) {
//     statements.add("INSERT INTO payments (payment) VALUES ($1::jsonb)",
//                    pqxx::params{message.value()});
//     statements.add("UPDATE accounts SET balance = balance + ($1::jsonb->>'amount')::bigint"
//                    " WHERE id = $1::jsonb->>'account'",
//                    pqxx::params{message.value()}, 1);  // the message fails unless 1 row changes
//   }

#include <cstdint>
#include <optional>
#include <pqxx/params>
#include <string_view>

namespace pawl {

/// Collects the statements of one message. Valid during the call that received it, on its thread.
class Statements {
 public:
  Statements() = default;
  virtual ~Statements() = default;
  Statements(const Statements&) = delete;
  Statements& operator=(const Statements&) = delete;

  /// Queues one statement with $1, $2, ... It runs after the statements that were added before. It
  /// is prepared once per connection, so pass values as `parameters`, at most 65,535 (PostgreSQL,
  /// "PostgreSQL Limits").
  ///
  /// `expect_rows`: the message fails unless the statement changes this number of rows, or, as a
  /// query, returns it. The message is then sent alone if the statement has a WITH, or is not a
  /// SELECT, INSERT, UPDATE, or DELETE.
  ///
  /// Throws PermanentError if `sql` is not one statement, if it would end or outlive the
  /// transaction, and for too many parameters. Throws std::invalid_argument for a text parameter
  /// with a NUL byte, which text in PostgreSQL cannot contain.
  void add(std::string_view sql, const pqxx::params& parameters = {},
           std::optional<std::uint64_t> expect_rows = std::nullopt) {
    do_add(sql, parameters, expect_rows);
  }

 private:
  virtual void do_add(std::string_view sql, const pqxx::params& parameters,
                      std::optional<std::uint64_t> expect_rows) = 0;
};

}  // namespace pawl
