#include "redis/script.hpp"

#include "errors.hpp"
#include "prelude.hpp"
#include "redis_server.hpp"

namespace {

using pawl::redis::Connection;
using pawl::redis::Error;
using pawl::redis::Script;
using pawl::redis::ScriptCall;

constexpr std::string_view kAppend = R"(
redis.call('RPUSH', KEYS[1], ARGV[1])
return redis.call('LLEN', KEYS[1])
)";

}  // namespace

TEST_CASE("a script is sent once, and again to a server that has forgotten it") {
  auto& server = RedisServer::shared();
  (void)server.ask({"SCRIPT", "FLUSH"});
  Connection connection(server.settings(), server.address());
  const Script append("append", kAppend);
  CHECK(append.run(connection, {{"list"}, {"a"}}).integer == 1);
  CHECK(append.run(connection, {{"list"}, {"b"}}).integer == 2);
  (void)server.ask({"SCRIPT", "FLUSH"});
  CHECK(append.run(connection, {{"list"}, {"c"}}).integer == 3);
  (void)server.ask({"SCRIPT", "FLUSH"});
  const auto replies =
      append.run_each(connection, {{{"list"}, {"d"}}, {{"list"}, {"e"}}, {{"other"}, {"f"}}});
  REQUIRE(replies.size() == 3);
  CHECK(replies[0].integer == 4);
  CHECK(replies[1].integer == 5);
  CHECK(replies[2].integer == 1);
  CHECK(append.run_each(connection, {}).empty());
}

TEST_CASE("what a script is refused is an error that names it, and the connection goes on") {
  auto& server = RedisServer::shared();
  Connection connection(server.settings(), server.address());
  const Script append("append", kAppend);
  (void)server.ask({"SET", "text", "no list"});
  const auto error = redis_error([&] { return append.run(connection, {{"text"}, {"a"}}); });
  REQUIRE(error.has_value());
  CHECK(error->kind() == Error::Kind::kRefused);
  CHECK(error->code() == "WRONGTYPE");
  CHECK_THAT(error->what(), ContainsSubstring(" rejected append: "));
  CHECK(append.run(connection, {{"list"}, {"a"}}).integer == 1);
}

TEST_CASE("a script that does not compile is refused when it is sent") {
  auto& server = RedisServer::shared();
  Connection connection(server.settings(), server.address());
  const Script broken("broken", "return return");
  const auto error = redis_error([&] { return broken.run(connection, {}); });
  REQUIRE(error.has_value());
  CHECK(error->kind() == Error::Kind::kRefused);
}
