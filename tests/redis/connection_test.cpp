// Whom pawl connects to, whom not, and what becomes of a connection that fails; on real servers.
#include "redis/connection.hpp"

#include <thread>

#include "acl_user.hpp"
#include "errors.hpp"
#include "prelude.hpp"
#include "redis/pool.hpp"
#include "redis_server.hpp"

namespace {

using pawl::redis::Address;
using pawl::redis::Connection;
using pawl::redis::Error;
using pawl::redis::Pool;
using pawl::redis::Settings;

std::optional<Error> refusal(const Settings& settings) {
  return redis_error([&] { return Connection(settings, *settings.address).alive(); });
}

}  // namespace

TEST_CASE("a master that evicts nothing is connected to, in the database that is named") {
  auto& server = RedisServer::shared();
  auto settings = server.settings();
  settings.database = 3;
  Connection connection(settings, server.address());
  CHECK(connection.run({"SET", "a", "1"}).text == "OK");
  CHECK(server.text({"GET", "a"}).empty());
  CHECK(server.text({"INFO", "keyspace"}).find("db3:keys=1") != std::string::npos);
  CHECK(connection.server() == "Redis " + server.address().text());
}

TEST_CASE("values may hold any bytes") {
  auto& server = RedisServer::shared();
  Connection connection(server.settings(), server.address());
  const std::string bytes("a\0\r\n$7\xff b", 10);
  (void)connection.run({"SET", bytes, bytes});
  CHECK(connection.run({"GET", bytes}).text == bytes);
  (void)connection.run({"SET", "empty", ""});
  CHECK(connection.run({"GET", "empty"}).text.empty());
}

TEST_CASE("a replica is refused") {
  const RedisServer master;
  const RedisServer replica({"replicaof=127.0.0.1 " + std::to_string(master.address().port)});
  const auto error = refusal(replica.settings());
  REQUIRE(error.has_value());
  CHECK(error->kind() == Error::Kind::kUnfit);
  CHECK_THAT(error->what(), ContainsSubstring("is a replica, not a master"));
}

TEST_CASE("a master that becomes a replica is left with the next command") {
  const RedisServer master;
  const RedisServer server;
  Connection connection(server.settings(), server.address());
  (void)server.ask({"REPLICAOF", "127.0.0.1", std::to_string(master.address().port)});
  const auto error = redis_error([&] { return connection.run({"SET", "a", "1"}); });
  REQUIRE(error.has_value());
  CHECK(error->kind() == Error::Kind::kRefused);
  CHECK(error->code() == "READONLY");
  CHECK_FALSE(connection.alive());
}

TEST_CASE("a server that may evict keys is refused") {
  const auto policy = GENERATE("allkeys-lru"s, "volatile-ttl"s);
  const RedisServer server({"maxmemory-policy=" + policy});
  const auto error = refusal(server.settings());
  REQUIRE(error.has_value());
  CHECK(error->kind() == Error::Kind::kUnfit);
  CHECK_THAT(error->what(), ContainsSubstring("has maxmemory-policy " + policy));
}

TEST_CASE("a rejected login names the options to check, and shows no password") {
  const RedisServer server({"requirepass=right"});
  auto settings = server.settings();
  const auto missing = refusal(settings);
  REQUIRE(missing.has_value());
  CHECK(missing->code() == "NOAUTH");
  CHECK_THAT(missing->what(), ContainsSubstring("Set redis.password"));
  settings.credentials.password = "wrong-one";
  settings.credentials.user = GENERATE(""s, "somebody"s);
  const auto wrong = refusal(settings);
  REQUIRE(wrong.has_value());
  CHECK(wrong->code() == "WRONGPASS");
  CHECK_THAT(wrong->what(), ContainsSubstring("Check redis.user and redis.password"));
  CHECK_THAT(wrong->what(), !ContainsSubstring("wrong-one"));
  settings.credentials = {"", "right"};
  CHECK_FALSE(refusal(settings).has_value());
}

TEST_CASE("the user of docs/external-calls-redis.md may connect, and nothing else") {
  const RedisServer server;
  CHECK(server.text(documented_user()) == "OK");
  auto settings = server.settings();
  settings.credentials = {"pawl", "secret"};
  settings.database = 1;
  Connection connection(settings, server.address());
  const auto error = redis_error([&] { return connection.run({"CONFIG", "GET", "maxmemory"}); });
  REQUIRE(error.has_value());
  CHECK(error->code() == "NOPERM");
  CHECK_THAT(error->what(),
             ContainsSubstring("the privileges that docs/external-calls-redis.md lists"));
  CHECK(connection.alive());
}

TEST_CASE("nobody answers there") {
  const auto address = [] { return RedisServer().address(); }();
  Settings settings;
  settings.address = address;
  const auto error = refusal(settings);
  REQUIRE(error.has_value());
  CHECK(error->kind() == Error::Kind::kConnection);
  CHECK_THAT(error->what(), StartsWith("Redis " + address.text() + ": cannot connect"));
}

TEST_CASE("a server that stands still is given up, and its late answer is nobody's") {
  const RedisServer server;
  auto settings = server.settings();
  Connection connection(settings, server.address());
  server.freeze();
  settings.timeout = 50ms;
  const auto connecting = refusal(settings);
  REQUIRE(connecting.has_value());
  CHECK(connecting->kind() == Error::Kind::kConnection);
  CHECK_THAT(connecting->what(), ContainsSubstring("no response within 50 ms"));
  server.thaw();

  settings.timeout = 2s;  // also to connect, on a machine that has little time for it
  Connection brief(settings, server.address());
  server.freeze();
  const auto error = redis_error([&] { return brief.run({"SET", "a", "late"}); });
  server.thaw();
  REQUIRE(error.has_value());
  CHECK(error->kind() == Error::Kind::kConnection);
  wait_until([&] { return server.text({"GET", "a"}) == "late"; }, 20s, "the command was done");
  CHECK_FALSE(brief.alive());
  const auto again = redis_error([&] { return brief.run({"GET", "b"}); });
  REQUIRE(again.has_value());
  CHECK_THAT(again->what(), ContainsSubstring("the connection is closed"));
}

TEST_CASE("a connection that the server closes is lost, and others are not disturbed") {
  const RedisServer server;
  Connection connection(server.settings(), server.address());
  const auto id = connection.run({"CLIENT", "ID"}).integer;
  CHECK_FALSE(connection.stale());
  CHECK(server.text({"CLIENT", "KILL", "ID", std::to_string(id)}) == "1");
  wait_until([&] { return connection.stale(); }, 20s, "the end arrives");
  const auto error = redis_error([&] { return connection.run({"PING"}); });
  REQUIRE(error.has_value());
  CHECK(error->kind() == Error::Kind::kConnection);
  CHECK_FALSE(connection.alive());
}

TEST_CASE("a server that says that it is not ready is left") {
  auto& server = RedisServer::shared();
  Connection connection(server.settings(), server.address());
  const pawl::redis::Reply loading{
      pawl::redis::Reply::Type::kError, 0, "LOADING Redis is loading the dataset in memory", {}};
  CHECK(connection.refused(loading, "EVALSHA").code() == "LOADING");
  CHECK_FALSE(connection.alive());
}

TEST_CASE("a write to a server that is gone does not end the process") {
  RedisServer server;
  Connection connection(server.settings(), server.address());
  server.stop();
  wait_until([&] { return connection.stale(); }, 20s, "the end arrives");
  // More than one write: the first is answered with a reset.
  const auto error =
      redis_error([&] { return connection.run({"SET", "a", std::string(32U << 20U, 'x')}); });
  REQUIRE(error.has_value());
  CHECK(error->kind() == Error::Kind::kConnection);
}

TEST_CASE("a pool keeps as many connections as were used at once") {
  const RedisServer server;
  Pool pool(server.settings());
  {
    const auto one = pool.borrow();
    const auto other = pool.borrow();
    CHECK(one->run({"CLIENT", "ID"}).integer != other->run({"CLIENT", "ID"}).integer);
    CHECK(pool.idle() == 0);
  }
  CHECK(pool.idle() == 2);
  (void)pool.borrow()->run({"PING"});
  CHECK(pool.idle() == 2);
}

TEST_CASE("a pool lends no connection that the server has closed") {
  RedisServer server;
  Pool pool(server.settings());
  {
    const auto one = pool.borrow();
    const auto other = pool.borrow();
  }
  server.stop();
  server.start();
  wait_until([&] { return pool.borrow()->run({"PING"}).text == "PONG"; }, 20s, "a new one");
  CHECK(pool.idle() == 1);
}

TEST_CASE("a connection that breaks in use takes the idle ones of its pool with it") {
  const RedisServer server;
  Pool pool(server.settings());
  {
    const auto idle = pool.borrow();
    const auto broken = pool.borrow();
    (void)redis_error([&] { return broken->run({"CLIENT", "KILL", "TYPE", "normal"}); });
    (void)server.text({"CLIENT", "KILL", "TYPE", "normal"});
    (void)redis_error([&] { return broken->run({"PING"}); });
    CHECK_FALSE(broken->alive());
  }
  CHECK(pool.borrow()->run({"PING"}).text == "PONG");
  CHECK(pool.idle() == 1);
}

TEST_CASE("threads share a pool") {
  const RedisServer server;
  Pool pool(server.settings());
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&pool] {
      for (int round = 0; round < 200; ++round)
        (void)pool.borrow()->run({"INCR", "n"});
    });
  }
  for (auto& thread : threads)
    thread.join();
  CHECK(server.text({"GET", "n"}) == "1600");
  CHECK(pool.idle() <= 8);
}
