#pragma once

#include <cstdint>
#include <optional>
#include <pqxx/params>
#include <string_view>

namespace pawl {

/// Takes what a statement handler wants done with one message. Valid during the call that it was
/// given to; one thread.
class Statements {
 public:
  Statements() = default;
  virtual ~Statements() = default;
  Statements(const Statements&) = delete;
  Statements& operator=(const Statements&) = delete;

  /// Queues one statement with $1, $2, ..., to run behind those before it. It is prepared once per
  /// connection, so give values as parameters. With `expect_rows` the message fails unless the
  /// statement touches (or, a query, returns) exactly so many rows; where the text has a WITH, or
  /// is none of SELECT, INSERT, UPDATE and DELETE, that makes the message go alone. Throws
  /// PermanentError for a text that is not one statement, or that ends or outlives the message's
  /// transaction, and for more than 65535 parameters; std::invalid_argument for a text parameter
  /// with a NUL byte, which PostgreSQL's text cannot hold.
  void add(std::string_view sql, const pqxx::params& parameters = {},
           std::optional<std::uint64_t> expect_rows = std::nullopt) {
    do_add(sql, parameters, expect_rows);
  }

 private:
  virtual void do_add(std::string_view sql, const pqxx::params& parameters,
                      std::optional<std::uint64_t> expect_rows) = 0;
};

}  // namespace pawl
