#pragma once

#include <optional>
#include <string>
#include <vector>

#include "postgres/error.hpp"
#include "postgres/parameters.hpp"
#include "postgres/session.hpp"
#include "postgres/statement.hpp"

namespace pawl::postgres {

/// Statements that travel to the server together and are answered together: one round trip
/// (PostgreSQL manual, 34.5 "Pipeline Mode"). After the first that fails the server skips the rest.
/// Lives on the stack of the session's thread; leaves the connection in its usual, blocking mode.
class Flight {
 public:
  explicit Flight(Session& session);
  ~Flight();
  Flight(const Flight&) = delete;
  Flight& operator=(const Flight&) = delete;

  /// Queues a statement; prepares it in the same flight when this session has not yet.
  /// The parameters may be reused as soon as add() returns.
  void add(const Statement& statement, Parameters& parameters);
  void add(const Statement& statement);

  /// Hands what is queued to the socket without waiting for answers.
  void push();

  /// Sends everything and returns one result a statement, in order. Throws Error for the first
  /// statement that failed; all answers are read then too, so the session can go on (after a
  /// ROLLBACK when a transaction is open).
  std::vector<Result> run();

 private:
  struct Expected {
    bool is_prepare;
    std::string prepared_name;
  };

  [[nodiscard]] bool prepares(const std::string& name) const;
  std::vector<Result> read_answers(std::optional<Error>& failure);
  void send_prepare(const Statement& statement);
  void check_sent(int ok);
  PGresult* next_result();
  void wait_for_answer();

  Session& session_;
  PGconn* raw_;
  std::vector<Expected> expected_;
};

}  // namespace pawl::postgres
