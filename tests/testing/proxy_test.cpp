#include <libpq-fe.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <pqxx/pqxx>
#include <thread>

#include "prelude.hpp"

namespace {

using Connection = std::unique_ptr<PGconn, decltype(&PQfinish)>;
using Result = std::unique_ptr<PGresult, decltype(&PQclear)>;

Connection connect(const std::string& url) {
  Connection connection{PQconnectdb(url.c_str()), &PQfinish};
  REQUIRE(PQstatus(connection.get()) == CONNECTION_OK);
  return connection;
}

/// A database with an empty table, reached past the proxy and through it.
struct Books {
  std::string direct = [] {
    auto url = PostgresServer::shared().create_empty_database("proxy");
    pqxx::connection connection{url};
    pqxx::nontransaction{connection}.exec("CREATE TABLE applied (n integer PRIMARY KEY)");
    return url;
  }();
  PostgresProxy proxy{direct};

  /// Rows that are committed now; waits for locks of a transaction that is about to end.
  std::string applied() const {
    pqxx::connection connection{direct};
    pqxx::work transaction{connection};
    transaction.exec("LOCK TABLE applied IN SHARE MODE");
    return transaction.query_value<std::string>(
        "SELECT coalesce(string_agg(n::text, ' ' ORDER BY n), '') FROM applied");
  }
};

void insert_and_commit(const std::string& url, int n) {
  pqxx::connection connection{url};
  pqxx::work transaction{connection};
  transaction.exec("INSERT INTO applied VALUES ($1)", pqxx::params{n});
  transaction.commit();
}

/// Sends, in one packet, a pipeline of BEGIN, INSERT and COMMIT with one Sync behind it.
void send_pipeline(PGconn* connection, int n, bool prepared) {
  if (prepared) {
    Result{PQprepare(connection, "end_it", "COMMIT", 0, nullptr), &PQclear};
  }
  REQUIRE(PQenterPipelineMode(connection) == 1);
  const auto insert = "INSERT INTO applied VALUES (" + std::to_string(n) + ")";
  for (const auto& sql : {std::string{"BEGIN"}, insert}) {
    REQUIRE(PQsendQueryParams(connection, sql.c_str(), 0, nullptr, nullptr, nullptr, nullptr, 0) ==
            1);
  }
  if (prepared) {
    REQUIRE(PQsendQueryPrepared(connection, "end_it", 0, nullptr, nullptr, nullptr, 0) == 1);
  } else {
    REQUIRE(PQsendQueryParams(connection, "COMMIT", 0, nullptr, nullptr, nullptr, nullptr, 0) == 1);
  }
  REQUIRE(PQpipelineSync(connection) == 1);
  REQUIRE(PQflush(connection) == 0);
}

/// Command tags, or errors, that arrive up to the Sync's answer or the end of the connection.
std::vector<std::string> pipeline_answers(PGconn* connection) {
  std::vector<std::string> answers;
  for (int empty = 0; empty < 2 && PQstatus(connection) == CONNECTION_OK;) {
    const Result result{PQgetResult(connection), &PQclear};
    if (!result) {
      ++empty;
      continue;
    }
    empty = 0;
    switch (PQresultStatus(result.get())) {
      case PGRES_PIPELINE_SYNC:
        return answers;
      case PGRES_COMMAND_OK:
        answers.emplace_back(PQcmdStatus(result.get()));
        break;
      default:
        answers.emplace_back("error");
        break;
    }
  }
  return answers;
}

/// What arrives on the socket within the time: false means silence.
bool readable(PGconn* connection, std::chrono::milliseconds time) {
  pollfd entry{PQsocket(connection), POLLIN, 0};
  return poll(&entry, 1, static_cast<int>(time.count())) == 1;
}

}  // namespace

TEST_CASE("without a trigger the proxy changes nothing and counts what passes") {
  const Books books;
  for (int n = 1; n <= 3; ++n) {
    insert_and_commit(books.proxy.url(), n);
  }
  CHECK(books.applied() == "1 2 3");
  wait_until([&] { return books.proxy.counts().open == 0; }, 5s, "the connections' end");
  const auto counts = books.proxy.counts();
  CHECK(counts.accepted == 3);
  CHECK(counts.cut == 0);
  CHECK(counts.commits_sent == 3);
  CHECK(counts.commits_completed == 3);
  CHECK(counts.bytes_to_server > 0);
  CHECK(counts.bytes_to_client > 0);
}

TEST_CASE("large values pass in both directions") {
  const Books books;
  pqxx::connection connection{books.proxy.url()};
  pqxx::nontransaction statement{connection};
  const std::string large(3'000'000, 'x');
  CHECK(statement.query_value<std::string>("SELECT $1::text", pqxx::params{large}) == large);
}

TEST_CASE("a cut before COMMIT leaves nothing in the database") {
  Books books;
  const auto trigger = books.proxy.cut(Moment::kBefore);
  CHECK_THROWS_AS(insert_and_commit(books.proxy.url(), 1), pqxx::failure);
  trigger.wait(5s);
  CHECK(books.applied().empty());
  CHECK(books.proxy.counts().commits_sent == 0);
  CHECK(books.proxy.counts().cut == 1);
  insert_and_commit(books.proxy.url(), 2);  // it fires once
  CHECK(books.applied() == "2");
}

TEST_CASE("a cut after COMMIT leaves the effect in the database and the client in doubt") {
  Books books;
  const auto trigger = books.proxy.cut(Moment::kAfter);
  CHECK_FALSE(trigger.fired());
  CHECK_THROWS_AS(insert_and_commit(books.proxy.url(), 1), pqxx::failure);
  trigger.wait(5s);
  CHECK(trigger.fired());
  CHECK(books.applied() == "1");
  CHECK(books.proxy.counts().commits_completed == 1);
}

TEST_CASE("in a pipeline that arrives as one packet, the cut before COMMIT lets the rest through") {
  for (const bool prepared : {false, true}) {
    CAPTURE(prepared);
    Books books;
    const auto connection = connect(books.proxy.url());
    const auto held = books.proxy.stall(Moment::kBefore);
    send_pipeline(connection.get(), 1, prepared);
    held.wait(5s);
    // The INSERT is on the server: its row lock is held by an open transaction there.
    pqxx::connection watcher{books.direct};
    wait_until(
        [&] {
          return pqxx::nontransaction{watcher}.query_value<bool>(
              "SELECT EXISTS (SELECT FROM pg_locks l JOIN pg_class c ON c.oid = l.relation"
              " WHERE c.relname = 'applied' AND l.mode = 'RowExclusiveLock')");
        },
        5s, "the INSERT on the server");
    CHECK(books.proxy.counts().commits_sent == 0);
    books.proxy.cut_all();
    CHECK(books.applied().empty());
  }
}

TEST_CASE("a pipeline cut before COMMIT applies nothing, cut after COMMIT everything") {
  for (const bool prepared : {false, true}) {
    for (const auto moment : {Moment::kBefore, Moment::kAfter}) {
      CAPTURE(prepared, moment == Moment::kBefore);
      Books books;
      const auto connection = connect(books.proxy.url());
      const auto trigger = books.proxy.cut(moment);
      send_pipeline(connection.get(), 1, prepared);
      const auto answers = pipeline_answers(connection.get());
      trigger.wait(5s);
      for (const auto& answer : answers) {
        CHECK(answer != "COMMIT");
      }
      CHECK(PQstatus(connection.get()) == CONNECTION_BAD);
      CHECK(books.applied() == (moment == Moment::kBefore ? "" : "1"));
    }
  }
}

TEST_CASE("an untouched pipeline is answered in full") {
  const Books books;
  const auto connection = connect(books.proxy.url());
  send_pipeline(connection.get(), 1, true);
  CHECK(pipeline_answers(connection.get()) ==
        std::vector<std::string>{"BEGIN", "INSERT 0 1", "COMMIT"});
  CHECK(books.applied() == "1");
}

TEST_CASE("a COMMIT that fails at the server is not taken for one that was done") {
  Books books;
  pqxx::connection{books.direct};
  {
    pqxx::connection connection{books.direct};
    pqxx::nontransaction{connection}.exec(
        "CREATE TABLE child (n integer REFERENCES applied DEFERRABLE INITIALLY DEFERRED)");
  }
  const auto trigger = books.proxy.cut(Moment::kAfter);
  pqxx::connection connection{books.proxy.url()};
  {
    pqxx::work transaction{connection};
    transaction.exec("INSERT INTO child VALUES (99)");
    CHECK_THROWS_AS(transaction.commit(), pqxx::foreign_key_violation);
  }
  CHECK_FALSE(trigger.fired());
  CHECK(books.proxy.counts().commits_completed == 0);
}

TEST_CASE("a trigger waits for its occurrence and its condition") {
  Books books;
  const auto third = books.proxy.cut(Moment::kBefore, PostgresProxy::is_commit, 3);
  insert_and_commit(books.proxy.url(), 1);
  insert_and_commit(books.proxy.url(), 2);
  CHECK_FALSE(third.fired());
  CHECK_THROWS_AS(insert_and_commit(books.proxy.url(), 3), pqxx::failure);
  third.wait(5s);
  CHECK(books.applied() == "1 2");

  const auto insert = books.proxy.cut(Moment::kAfter, [](const ProxyEvent& event) {
    return event.text == "INSERT 0 1" && event.backend_pid != 0;
  });
  CHECK_THROWS_AS(insert_and_commit(books.proxy.url(), 4), pqxx::failure);
  insert.wait(5s);
  CHECK(books.applied() == "1 2");

  auto never = books.proxy.cut(Moment::kBefore, [](const ProxyEvent& event) {
    return event.text.find("INSERT") != std::string::npos;
  });
  never.disarm();
  insert_and_commit(books.proxy.url(), 5);
  CHECK_FALSE(never.fired());
  CHECK_THROWS_AS(never.wait(1ms), Timeout);
}

TEST_CASE("a stalled COMMIT is silent until it is released, and then it is done") {
  Books books;
  const auto connection = connect(books.proxy.url());
  const auto held = books.proxy.stall(Moment::kBefore);
  send_pipeline(connection.get(), 1, false);
  held.wait(5s);
  // The answers to BEGIN and INSERT, if they come at all, come without their Sync: no COMMIT.
  CHECK(books.proxy.counts().commits_sent == 0);
  books.proxy.resume();
  CHECK(pipeline_answers(connection.get()) ==
        std::vector<std::string>{"BEGIN", "INSERT 0 1", "COMMIT"});
  CHECK(books.proxy.counts().commits_sent == 1);
  CHECK(books.applied() == "1");
}

TEST_CASE("a stalled answer means that the server has committed and the client does not know") {
  Books books;
  const auto connection = connect(books.proxy.url());
  const auto held = books.proxy.stall(Moment::kAfter);
  REQUIRE(PQsendQuery(connection.get(), "INSERT INTO applied VALUES (1); COMMIT") == 1);
  held.wait(5s);
  CHECK(books.applied() == "1");
  books.proxy.resume();
  CHECK(readable(connection.get(), 5s));
}

TEST_CASE("while everything is stalled nothing moves and no connection ends") {
  Books books;
  const auto connection = connect(books.proxy.url());
  books.proxy.stall_all();
  REQUIRE(PQsendQuery(connection.get(), "SELECT 1") == 1);
  CHECK_FALSE(readable(connection.get(), 100ms));
  CHECK(books.proxy.counts().open == 1);
  books.proxy.resume();
  CHECK(readable(connection.get(), 5s));
}

TEST_CASE("a stall for a while ends by itself") {
  Books books;
  const auto connection = connect(books.proxy.url());
  const auto begun = std::chrono::steady_clock::now();
  books.proxy.stall_all_for(150ms);
  const Result result{PQexec(connection.get(), "SELECT 1"), &PQclear};
  CHECK(PQresultStatus(result.get()) == PGRES_TUPLES_OK);
  CHECK(std::chrono::steady_clock::now() - begun >= 150ms);
}

TEST_CASE("cutting all ends every connection at once") {
  Books books;
  pqxx::connection first{books.proxy.url()};
  pqxx::connection second{books.proxy.url()};
  books.proxy.cut_all();
  CHECK_THROWS_AS(pqxx::nontransaction{first}.exec("SELECT 1"), pqxx::broken_connection);
  CHECK_THROWS_AS(pqxx::nontransaction{second}.exec("SELECT 1"), pqxx::broken_connection);
  CHECK(books.proxy.counts().cut == 2);
  CHECK(books.proxy.counts().open == 0);
}

TEST_CASE("refused connections fail at once, open ones stay, and the port remains the proxy's") {
  Books books;
  pqxx::connection open{books.proxy.url()};
  books.proxy.refuse_connections(true);
  const Connection refused{PQconnectdb(books.proxy.url().c_str()), &PQfinish};
  CHECK(PQstatus(refused.get()) == CONNECTION_BAD);
  CHECK(std::string{PQerrorMessage(refused.get())}.find("refused") != std::string::npos);
  CHECK(pqxx::nontransaction{open}.query_value<int>("SELECT 1") == 1);
  books.proxy.refuse_connections(false);
  insert_and_commit(books.proxy.url(), 1);
  CHECK(books.applied() == "1");
}

TEST_CASE("latency delays each direction, and order stays") {
  Books books;
  const auto connection = connect(books.proxy.url());
  books.proxy.set_latency(30ms, 50ms);
  const auto begun = std::chrono::steady_clock::now();
  const Result result{PQexec(connection.get(), "SELECT 1"), &PQclear};
  CHECK(PQresultStatus(result.get()) == PGRES_TUPLES_OK);
  CHECK(std::chrono::steady_clock::now() - begun >= 80ms);
  send_pipeline(connection.get(), 1, false);
  books.proxy.set_latency(0ms, 0ms);
  CHECK(pipeline_answers(connection.get()) ==
        std::vector<std::string>{"BEGIN", "INSERT 0 1", "COMMIT"});
}

TEST_CASE("a cancel request passes through the proxy") {
  Books books;
  const auto connection = connect(books.proxy.url());
  REQUIRE(PQsendQuery(connection.get(), "SELECT pg_sleep(600)") == 1);
  pqxx::connection watcher{books.direct};
  wait_until(
      [&] {
        return pqxx::nontransaction{watcher}.query_value<bool>(
            "SELECT EXISTS (SELECT FROM pg_stat_activity WHERE query = 'SELECT pg_sleep(600)')");
      },
      5s, "the long statement");
  const std::unique_ptr<PGcancel, decltype(&PQfreeCancel)> cancel{PQgetCancel(connection.get()),
                                                                  &PQfreeCancel};
  char reason[256];
  REQUIRE(PQcancel(cancel.get(), reason, sizeof reason) == 1);
  REQUIRE(readable(connection.get(), 10s));
  const Result result{PQgetResult(connection.get()), &PQclear};
  CHECK(std::string{PQresultErrorField(result.get(), PG_DIAG_SQLSTATE)} == "57014");
}

TEST_CASE("encryption is refused, so that the proxy can read") {
  const Books books;
  const Connection tls{PQconnectdb((books.proxy.url() + "?sslmode=require").c_str()), &PQfinish};
  CHECK(PQstatus(tls.get()) == CONNECTION_BAD);
  CHECK(PQstatus(connect(books.proxy.url() + "?sslmode=prefer").get()) == CONNECTION_OK);
}

TEST_CASE("what is not PostgreSQL's protocol is cut off, and others are not disturbed") {
  const Books books;
  pqxx::connection good{books.proxy.url()};
  const int stranger = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(static_cast<std::uint16_t>(books.proxy.port()));
  REQUIRE(::connect(stranger, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0);
  const std::string request = "GET / HTTP/1.1\r\n\r\n";
  REQUIRE(write(stranger, request.data(), request.size()) == static_cast<ssize_t>(request.size()));
  pollfd entry{stranger, POLLIN, 0};
  REQUIRE(poll(&entry, 1, 5000) == 1);
  char byte = 0;
  CHECK(read(stranger, &byte, 1) <= 0);
  close(stranger);
  CHECK(pqxx::nontransaction{good}.query_value<int>("SELECT 1") == 1);
}

TEST_CASE("when the server is gone, connecting through the proxy fails and it goes on") {
  PostgresServer server;
  PostgresProxy proxy{server.url()};
  server.stop(StopMode::kImmediate);
  CHECK_THROWS_AS(pqxx::connection{proxy.url()}, pqxx::broken_connection);
  server.start();
  pqxx::connection connection{proxy.url()};
  CHECK(pqxx::nontransaction{connection}.query_value<int>("SELECT 1") == 1);
}

TEST_CASE("the proxy's URL keeps everything of the server's but the address") {
  Books books;
  const auto port = std::to_string(books.proxy.port());
  CHECK(books.proxy.url("postgresql://me:a%40b@db.example:6000/my%20db?application_name=x%26y") ==
        "postgresql://me:a%40b@127.0.0.1:" + port + "/my%20db?application_name=x%26y");
  CHECK(books.proxy.url("host=/run/postgresql dbname=d user=u") ==
        "postgresql://u@127.0.0.1:" + port + "/d");
  CHECK_THROWS_AS(PostgresProxy{"host=/run/postgresql dbname=d"}, std::invalid_argument);
  CHECK_THROWS_AS(PostgresProxy{"postgresql://a,b/d"}, std::invalid_argument);
  CHECK_THROWS_AS(PostgresProxy{"nonsense=1"}, std::invalid_argument);
}

TEST_CASE("many connections at once, with cuts among them, neither lose nor double a commit") {
  Books books;
  constexpr int kThreads = 8;
  constexpr int kEach = 40;
  std::vector<PostgresProxy::Trigger> triggers;
  for (int i = 1; i <= 10; ++i) {
    triggers.push_back(books.proxy.cut(i % 2 == 0 ? Moment::kBefore : Moment::kAfter,
                                       PostgresProxy::is_commit, i * 20));
  }
  std::vector<std::thread> threads;
  for (int thread = 0; thread < kThreads; ++thread) {
    threads.emplace_back([&, thread] {
      for (int i = 0; i < kEach; ++i) {
        const int n = thread * kEach + i;
        try {
          insert_and_commit(books.proxy.url(), n);
        } catch (const pqxx::failure&) {
          try {
            insert_and_commit(books.direct, n);  // in doubt: the primary key tells
          } catch (const pqxx::unique_violation&) {
          }
        }
      }
    });
  }
  for (auto& thread : threads) {
    thread.join();
  }
  for (const auto& trigger : triggers) {
    trigger.wait(1s);
  }
  CHECK(books.proxy.counts().cut == 10);
  pqxx::connection connection{books.direct};
  CHECK(pqxx::nontransaction{connection}.query_value<int>("SELECT count(*) FROM applied") ==
        kThreads * kEach);
}
