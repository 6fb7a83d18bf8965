// Flights on a real server: what it says to statements that do not answer like a query.
#include "postgres/flight.hpp"

#include <pqxx/pqxx>

#include <future>
#include <thread>

#include "prelude.hpp"

using namespace pawl::postgres;

namespace {

SessionSettings settings() {
  SessionSettings result;
  result.url = PostgresServer::shared().url();
  return result;
}

/// What a flight of these statements throws, with the session's state afterwards. Its thread is
/// left behind where it does not come back: nothing else can end it.
struct Ended {
  std::string text;
  std::string sqlstate;
  bool alive = false;
};
Ended fly(std::vector<std::string> statements) {
  std::promise<Ended> promise;
  auto ended = promise.get_future();
  std::thread([promise = std::move(promise), statements = std::move(statements)]() mutable {
    Session session(settings());
    Ended result;
    try {
      Flight flight(session);
      for (const auto& text : statements)
        flight.add(Statement{"", text});
      (void)flight.run();
    } catch (const Error& error) {
      result.text = error.what();
      result.sqlstate = error.sqlstate();
    }
    result.alive = session.alive();
    promise.set_value(result);
  }).detach();
  if (ended.wait_for(20s) != std::future_status::ready)
    FAIL("the flight does not come back");
  return ended.get();
}

}  // namespace

// libpq hands out the answer to COPY again and again, and nobody would send or take the rows.
TEST_CASE("a flight with a COPY from or to the client ends and gives up its connection") {
  const std::string copy =
      GENERATE("COPY pg_temp.t FROM STDIN", "COPY (SELECT 1) TO STDOUT", "copy pg_temp.t to stdout",
               // More than libpq takes at once.
               "COPY (SELECT generate_series(1, 200000)) TO STDOUT");
  const bool last = GENERATE(true, false);
  CAPTURE(copy, last);
  std::vector<std::string> statements{"CREATE TEMPORARY TABLE t (id integer)", copy};
  if (!last)
    statements.emplace_back("SELECT 1");
  const auto ended = fly(statements);
  CHECK_THAT(ended.text, ContainsSubstring("COPY") && ContainsSubstring("closed the connection"));
  CHECK_FALSE(ended.alive);
}

TEST_CASE("what only looks like COPY FROM STDIN is answered as usual") {
  const auto ended = fly({"SELECT 'COPY t FROM STDIN'", "WITH copy AS (SELECT 1) TABLE copy",
                          "EXPLAIN SELECT 1", "COPY (SELECT 1) TO '/dev/null'", "SELECT 2"});
  CHECK(ended.text.empty());
  CHECK(ended.alive);
}
