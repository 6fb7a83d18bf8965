#include "postgres/flight.hpp"

#include <fmt/format.h>
#include <poll.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "postgres/socket_wait.hpp"

namespace pawl::postgres {
namespace {

/// The server sends rows of COPY, or waits for them.
bool is_copy(const PGresult* result) {
  const auto status = PQresultStatus(result);
  return status == PGRES_COPY_IN || status == PGRES_COPY_OUT || status == PGRES_COPY_BOTH;
}

/// A COPY of libpqxx's leaves the end of its answer unread.
void read_rest(PGconn* raw) {
  while (const Result rest{PQgetResult(raw)}) {
    if (is_copy(rest.get()))
      return;
  }
}

}  // namespace

Flight::Flight(Session& session, Cargo cargo)
    : session_(session), raw_(session.raw()), cargo_(cargo) {
  if (PQtransactionStatus(raw_) == PQTRANS_ACTIVE)
    read_rest(raw_);
  // Non-blocking, so that a server which blocks on sending answers cannot deadlock with us.
  if (PQenterPipelineMode(raw_) != 1 || PQsetnonblocking(raw_, 1) != 0) {
    throw Error::connection_lost(PQerrorMessage(raw_));
  }
}

Flight::~Flight() {
  if (PQstatus(raw_) != CONNECTION_OK)
    return;
  // Fails when a flight was abandoned midway (an exception between add and run): the session is
  // out of step then and must not be used again.
  if (PQexitPipelineMode(raw_) != 1 || PQsetnonblocking(raw_, 0) != 0)
    session_.interrupt();
}

void Flight::check_sent(int ok) {
  if (ok != 1)
    throw Error::connection_lost(PQerrorMessage(raw_));
}

bool Flight::prepares(const std::string& name) const {
  return std::any_of(expected_.begin(), expected_.end(), [&name](const Expected& e) {
    return e.is_prepare && e.prepared_name == name;
  });
}

void Flight::send_prepare(const Statement& statement) {
  check_sent(PQsendPrepare(raw_, statement.name.c_str(), statement.text.c_str(), 0, nullptr));
  expected_.push_back({true, statement.name});
}

void Flight::send_text(const std::string& text, const Bound& bound) {
  check_sent(PQsendQueryParams(raw_, text.c_str(), bound.count, nullptr, bound.view.values,
                               bound.view.lengths, bound.view.formats, 0));
}

Flight::Bound Flight::bind(const Statement& statement, Parameters& parameters) const {
  if (statement.verifies_session)
    return {parameters.view_with(session_.state()), parameters.count() + 1};
  return {parameters.view(), parameters.count()};
}

void Flight::add(const Statement& asked, Parameters& parameters) {
  const auto& statement = session_.form_of(asked);
  const auto bound = bind(statement, parameters);
  if (!session_.prepares() || statement.name.empty()) {
    send_text(statement.text, bound);
  } else {
    if (!session_.is_prepared(statement.name) && !prepares(statement.name)) {
      send_prepare(statement);
    }
    check_sent(PQsendQueryPrepared(raw_, statement.name.c_str(), bound.count, bound.view.values,
                                   bound.view.lengths, bound.view.formats, 0));
  }
  sent(statement);
}

void Flight::sent(const Statement& statement) {
  expected_.push_back({false, {}});
  ++statements_;
  if (statement.publishes)
    session_.note_published();
  if (statement.of_application)
    session_.runs_application_statement(statement);
}

void Flight::add(Request& request, std::string_view comment) {
  if (comment.empty())
    return add(request);
  const auto& statement = session_.form_of(*request.statement);
  // On a line of its own: the text may end in a comment that goes to the end of its line.
  send_text(fmt::format("{}\n{}", statement.text, comment), bind(statement, request.parameters));
  sent(statement);
}

void Flight::add(const Statement& statement) {
  Parameters none;
  add(statement, none);
}

void Flight::add_description(const Statement& statement) {
  // Without a name the next statement without one replaces it.
  const std::string name = session_.prepares() ? statement.name : std::string{};
  if (name.empty() || (!session_.is_prepared(name) && !prepares(name))) {
    check_sent(PQsendPrepare(raw_, name.c_str(), statement.text.c_str(), 0, nullptr));
    expected_.push_back({true, name});
  }
  check_sent(PQsendDescribePrepared(raw_, name.c_str()));
  expected_.push_back({false, {}});
  ++statements_;
}

void Flight::push() {
  if (PQsendFlushRequest(raw_) != 1 || PQflush(raw_) < 0) {
    throw Error::connection_lost(PQerrorMessage(raw_));
  }
}

/// Without a single byte. Zero: as long as it takes, for who has set no limit to statements either.
std::chrono::milliseconds Flight::patience() const {
  const auto one = session_.statement_timeout();
  const auto own = session_.answer_timeout();
  const bool unlimited = own.count() == 0 || (cargo_ == Cargo::kHandler && one.count() == 0);
  if (unlimited)
    return std::chrono::milliseconds{0};
  return cargo_ == Cargo::kHandler ? own + one * static_cast<int>(statements_) : own;
}

/// What is behind the silence nobody can tell: a server process that was stopped, a network that
/// swallows, a pooler that is paused. The connection is of no more use.
void Flight::give_up(const std::string& why) {
  close();
  throw Error::connection_lost(why);
}

void Flight::close() {
  session_.interrupt();
  // Lets libpq see that it is closed: behind all that had come before.
  while (PQstatus(raw_) == CONNECTION_OK && PQconsumeInput(raw_) == 1) {
  }
}

void Flight::wait_for_server(short events) {
  const auto limit = patience();
  std::optional<std::chrono::steady_clock::time_point> until;
  if (limit.count() > 0)
    until = std::chrono::steady_clock::now() + limit;
  switch (wait_for_socket(raw_, events, until, session_.settings().unwanted)) {
    case Waited::kReady:
      return;
    case Waited::kUnwanted:
      give_up("the connection is no longer needed");
    case Waited::kLate:
      give_up(fmt::format("PostgreSQL has not responded for {:.1f} s. pawl closes the connection",
                          std::chrono::duration<double>(limit).count()));
  }
}

void Flight::wait_for_answer() {
  while (true) {
    const int unsent = PQflush(raw_);
    if (unsent < 0)
      throw Error::connection_lost(PQerrorMessage(raw_));
    if (PQisBusy(raw_) == 0)
      return;
    wait_for_server(static_cast<short>(unsent > 0 ? POLLIN | POLLOUT : POLLIN));
    if (PQconsumeInput(raw_) != 1)
      throw Error::connection_lost(PQerrorMessage(raw_));
  }
}

/// In pipeline mode "command strings containing multiple SQL commands are disallowed, and so is
/// COPY" (34.5.1), yet libpq sends it, and then hands out this one result for ever.
Result Flight::next_result() {
  wait_for_answer();
  Result result(PQgetResult(raw_));
  if (!is_copy(result.get()))
    return result;
  close();
  throw Error("08P01",
              "COPY FROM STDIN or TO STDOUT was sent together with other statements, which is not "
              "possible. pawl closed the connection. Run COPY alone, in the handler")
      .as_last_words();
}

std::vector<Result> Flight::run() {
  auto answers = run_each();
  if (answers.failure)
    throw *answers.failure;
  return std::move(answers.results);
}

Answers Flight::run_each() {
  Answers answers;
  try {
    check_sent(PQpipelineSync(raw_));
    read_answers(answers);
    return answers;
  } catch (const Error&) {
    // What the server said last ("terminating connection due to ...") tells more than the loss.
    if (answers.failure)
      throw answers.failure->as_last_words();
    throw;
  }
}

void Flight::read_answers(Answers& answers) {
  auto& results = answers.results;
  auto& failure = answers.failure;
  results.reserve(expected_.size());
  const auto fail = [&](Error error) {
    if (failure)
      return;
    failure = std::move(error);
    answers.failed_at = results.size();
  };
  for (const auto& expected : expected_) {
    auto result = next_result();
    if (!result)
      throw Error::connection_lost(PQerrorMessage(raw_));
    const auto status = PQresultStatus(result.get());
    if (status == PGRES_FATAL_ERROR || status == PGRES_BAD_RESPONSE) {
      fail(Error::from(result.get(), session_.settings().own_schema));
      // A pooler that shares server processes among transactions is refused, not worked around.
      if (failure->sqlstate() == kNoStatementState && !session_.behind_pooler())
        session_.stop_preparing();
      if (PQstatus(raw_) != CONNECTION_OK)
        throw *failure;
    } else if (status == PGRES_PIPELINE_ABORTED) {
      fail(Error("25P02", "an earlier statement in the same round trip failed"));
    } else if (expected.is_prepare && !expected.prepared_name.empty()) {
      session_.remember_prepared(expected.prepared_name);
    }
    if (!expected.is_prepare)
      results.push_back(std::move(result));
    // Each statement's results end with a null (34.5.1.2).
    while (next_result()) {
    }
  }
  const auto sync = next_result();
  if (!sync || PQresultStatus(sync.get()) != PGRES_PIPELINE_SYNC) {
    throw Error::connection_lost(PQerrorMessage(raw_));
  }
  expected_.clear();
}

}  // namespace pawl::postgres
