#include "errors.hpp"
#include "prelude.hpp"
#include "redis/connector.hpp"
#include "redis_server.hpp"

namespace {

using pawl::redis::Address;
using pawl::redis::Connector;
using pawl::redis::Error;
using pawl::redis::Settings;

std::string port(const RedisServer& server) {
  return std::to_string(server.address().port);
}

std::unique_ptr<RedisServer> replica_of(const RedisServer& master) {
  return std::make_unique<RedisServer>(std::vector<std::string>{
      "replicaof=127.0.0.1 " + port(master), "repl-diskless-sync-delay=0"});
}

/// A Sentinel that watches this server under the name "leases".
std::unique_ptr<RedisServer> sentinel_of(const RedisServer& master, const std::string& down_after) {
  return std::make_unique<RedisServer>(
      std::vector<std::string>{"sentinel=monitor leases 127.0.0.1 " + port(master) + " 1",
                               "sentinel=down-after-milliseconds leases " + down_after,
                               "sentinel=failover-timeout leases 2000"},
      "sentinel");
}

Settings by(const std::vector<Address>& sentinels, const std::string& master = "leases") {
  Settings settings;
  settings.sentinels = sentinels;
  settings.master = master;
  settings.timeout = 20s;
  return settings;
}

}  // namespace

TEST_CASE("Sentinel leads to the master, and after a failover to the new one") {
  RedisServer first;
  const auto second = replica_of(first);
  const auto sentinel = sentinel_of(first, "300");
  Connector connector(by({sentinel->address()}));
  CHECK(connector.connect()->server() == "Redis " + first.address().text());
  // It can fail over once it knows a replica that follows.
  wait_until(
      [&] {
        return second->text({"INFO", "replication"}).find("master_link_status:up") !=
                   std::string::npos &&
               sentinel->text({"INFO", "sentinel"}).find("slaves=1") != std::string::npos;
      },
      60s, "a replica that Sentinel knows");
  first.stop();
  std::string server;
  wait_until(
      [&] {
        return !redis_error([&] {
          server = connector.connect()->server();
          return 0;
        });
      },
      120s, "the failover");
  CHECK(server == "Redis " + second->address().text());
}

TEST_CASE("a Sentinel that is away or behind is passed over for the next") {
  const RedisServer master;
  const auto replica = replica_of(master);
  const auto away = [] { return RedisServer().address(); }();
  const auto behind = sentinel_of(*replica, "3600000");
  wait_until(
      [&] {
        return replica->text({"ROLE"}).empty() &&
               replica->ask({"ROLE"}).items.at(0).text == "slave";
      },
      20s, "a replica");
  const auto current = sentinel_of(master, "3600000");
  Connector connector(by({away, behind->address(), current->address()}));
  CHECK(connector.connect()->server() == "Redis " + master.address().text());

  Connector misled(by({away, behind->address()}));
  const auto error = redis_error([&] { return misled.connect(); });
  REQUIRE(error.has_value());
  CHECK(error->kind() == Error::Kind::kConnection);
  CHECK_THAT(error->what(), StartsWith("no Sentinel returned a reachable master leases: Sentinel " +
                                       away.text() + ": "));
  CHECK_THAT(error->what(), ContainsSubstring("cannot connect"));
  CHECK_THAT(error->what(), ContainsSubstring("is a replica, not a master"));
}

TEST_CASE("a Sentinel without a master of this name is an error") {
  const RedisServer master;
  const auto sentinel = sentinel_of(master, "3600000");
  Connector connector(by({sentinel->address()}, "other"));
  const auto error = redis_error([&] { return connector.connect(); });
  REQUIRE(error.has_value());
  CHECK_THAT(error->what(), ContainsSubstring("has no master other. Check redis.master"));
}

TEST_CASE("Sentinel has a password of its own") {
  const RedisServer master;
  const RedisServer sentinel(
      {"sentinel=monitor leases 127.0.0.1 " + port(master) + " 1", "requirepass=sentinels-own"},
      "sentinel");
  auto settings = by({sentinel.address()});
  const auto error = redis_error([&] { return Connector(settings).connect(); });
  REQUIRE(error.has_value());
  CHECK_THAT(error->what(), ContainsSubstring("NOAUTH"));
  settings.sentinel_credentials.password = "sentinels-own";
  CHECK(Connector(settings).connect()->server() == "Redis " + master.address().text());
}
