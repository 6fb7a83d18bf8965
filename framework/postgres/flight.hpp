#pragma once

#include <chrono>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "postgres/error.hpp"
#include "postgres/parameters.hpp"
#include "postgres/request.hpp"
#include "postgres/session.hpp"
#include "postgres/statement.hpp"

namespace pawl::postgres {

/// What the server answered to a flight.
struct Answers {
  std::vector<Result> results;   ///< one a statement, in order, also of those that failed
  std::optional<Error> failure;  ///< of the first statement that failed; the rest was skipped
  std::size_t failed_at = 0;     ///< its index in results; meaningless without a failure
};

/// Whose statements a flight carries, and so how long its answers may take.
enum class Cargo {
  kOwn,      ///< pawl's: SessionSettings::answer_timeout
  kHandler,  ///< a handler's among them: its timeout for each comes on top
};

/// Statements that travel to the server together and are answered together: one round trip
/// (PostgreSQL manual, 34.5 "Pipeline Mode"). After the first that fails the server skips the rest.
/// Lives on the stack of the session's thread; leaves the connection in its usual, blocking mode.
class Flight {
 public:
  explicit Flight(Session& session, Cargo cargo = Cargo::kOwn);
  ~Flight();
  Flight(const Flight&) = delete;
  Flight& operator=(const Flight&) = delete;

  /// Queues a statement; prepares it in the same flight when this session has not yet.
  /// The request may be reused as soon as add() returns.
  void add(Request& request) { add(*request.statement, request.parameters); }
  void add(const Statement& statement, Parameters& parameters);
  void add(const Statement& statement);
  /// With a comment behind the statement's text, which is not prepared then: no two texts are
  /// alike. Empty: as it is.
  void add(Request& request, std::string_view comment);

  /// Asks how the server understands the statement, whose parameters PQparamtype() tells then;
  /// prepares it for that.
  void add_description(const Statement& statement);

  /// So many statements are queued.
  [[nodiscard]] std::size_t size() const { return statements_; }

  /// Hands what is queued to the socket without waiting for answers.
  void push();

  /// Sends everything and returns one result a statement, in order. Throws Error for the first
  /// statement that failed; all answers are read then too, so the session can go on (after a
  /// ROLLBACK when a transaction is open).
  std::vector<Result> run();

  /// As run(), but leaves it to the caller what a statement's failure means. Throws Error only when
  /// the connection breaks, or is given up: because nothing was heard for longer than the answers
  /// may take, because whoever was connecting is to stop, or because of a COPY from or to the
  /// client, which no flight can carry.
  Answers run_each();

 private:
  struct Expected {
    bool is_prepare;
    std::string prepared_name;
  };

  [[nodiscard]] bool prepares(const std::string& name) const;
  void read_answers(Answers& answers);
  void send_prepare(const Statement& statement);
  /// What a statement is bound to.
  struct Bound {
    Parameters::View view;
    int count;
  };
  [[nodiscard]] Bound bind(const Statement& statement, Parameters& parameters) const;
  void send_text(const std::string& text, const Bound& bound);
  void sent(const Statement& statement);
  void check_sent(int ok);
  Result next_result();
  void wait_for_answer();
  [[nodiscard]] std::chrono::milliseconds patience() const;
  void wait_for_server(short events);
  [[noreturn]] void give_up(const std::string& why);
  void close();

  Session& session_;
  PGconn* raw_;
  Cargo cargo_;
  std::vector<Expected> expected_;
  std::size_t statements_ = 0;
};

}  // namespace pawl::postgres
