// [redis], and where leases are kept.
#include <sstream>

#include "config/in_force.hpp"
#include "config/redis_settings.hpp"
#include "config/values.hpp"
#include "loading.hpp"
#include "prelude.hpp"
#include "redis/transport.hpp"

using namespace pawl::config;

namespace {

const std::string kInRedis = R"([calls]
lease_store = "redis"
)";

const std::string kWhole = kInRedis + R"([redis]
sentinels = ["10.0.0.1:26379", "[::1]:26379"]
master = "mymaster"
user = "pawl"
password = "hunter2"
sentinel_user = "watcher"
sentinel_password = "hunter2"
database = 3
tls = true
server_name = "redis.example"
ca_file = "ca.pem"
certificate = "own.pem"
private_key = "/etc/own.key"
timeout = "250ms"
prefix = "app:"
)";

/// The errors without their places, each on a line; empty: it loads.
std::string problems(const std::string& config) {
  std::istringstream lines(messages_of(request(kRequired + config)));
  std::string all;
  for (std::string line; std::getline(lines, line);)
    all += (all.empty() ? "" : "\n") + line.substr(line.find(": ") + 2);
  return all;
}

struct Case {
  std::string config;  // behind kRequired
  std::string problem;
};

// clang-format off
const std::vector<Case> kCases{
    {"[redis]\naddress = \"a:1\"\ntls = true\n",
     "redis.address: set, but calls.lease_store is not \"redis\". Remove it, or set calls.lease_store = \"redis\"\n"
     "redis.tls: set, but calls.lease_store is not \"redis\". Remove it, or set calls.lease_store = \"redis\""},
    {"[calls]\nlease_store = \"memory\"\n",
     R"(calls.lease_store: invalid value "memory". Use "postgres" or "redis")"},
    {kInRedis,
     R"(redis.address: not set, but calls.lease_store is "redis". Set it to the server, such as "127.0.0.1:6379", or set redis.sentinels and redis.master)"},
    {kInRedis + "[redis]\naddress = \"localhost\"\n",
     R"(redis.address = "localhost": not a server address. Use host:port, such as "127.0.0.1:6379")"},
    {kInRedis + "[redis]\naddress = \"redis://localhost:1\"\n",
     R"(redis.address = "redis://localhost:1": not a server address. Use host:port, such as "127.0.0.1:6379")"},
    {kInRedis + "[redis]\naddress = \"a:1\"\nsentinels = [\"b:1\"]\nmaster = \"m\"\n",
     R"(redis.address = "a:1": redis.sentinels is also set. Keep one, because Sentinel returns the address of the master)"},
    {kInRedis + "[redis]\nsentinels = [\"b:1\", \"c\"]\nmaster = \"m\"\n",
     R"(redis.sentinels[1] = "c": not a server address. Use host:port, such as "127.0.0.1:6379")"},
    {kInRedis + "[redis]\nsentinels = [\"b:1\"]\n",
     R"(redis.master: not set, but redis.sentinels is set. Set it to the name of the master in Sentinel, such as "mymaster")"},
    {kInRedis + "[redis]\naddress = \"a:1\"\nmaster = \"m\"\nsentinel_password = \"hunter2\"\n",
     "redis.master: set, but redis.sentinels is not set. Remove it, or set redis.sentinels\n"
     "redis.sentinel_password: set, but redis.sentinels is not set. Remove it, or set redis.sentinels"},
    {kInRedis + "[redis]\naddress = \"a:1\"\nuser = \"pawl\"\n",
     R"(redis.password: not set, but redis.user is set. Set it to "${file:PATH}" or "${NAME}")"},
    {kInRedis + "[redis]\naddress = \"a:1\"\nca_file = \"ca.pem\"\n",
     "redis.ca_file: set, but redis.tls is false. Set tls = true, or remove it"},
    {kInRedis + "[redis]\naddress = \"a:1\"\ntls = true\ncertificate = \"a.pem\"\n",
     "redis.private_key: not set, but redis.certificate is set. Set both, or neither"},
    {kInRedis + "[redis]\naddress = \"a:1\"\ntls = true\nprivate_key = \"a.key\"\n",
     "redis.certificate: not set, but redis.private_key is set. Set both, or neither"},
    {kInRedis + "[redis]\naddress = \"a:1\"\nprefix = \"{x}\"\n",
     R"(redis.prefix = "{x}": contains a brace. Remove it, because pawl puts the common part of the keys of a lease into braces)"},
    {kInRedis + "lease_time = \"2s\"\n[redis]\naddress = \"a:1\"\n",
     R"(redis.timeout = "1s": longer than a third of calls.lease_time (2s). Use less, so that pawl can retry an extension before the lease expires)"},
    {kInRedis + "[redis]\naddress = \"a:1\"\ntimeout = \"1ms\"\n",
     R"(redis.timeout = "1ms": out of range. Use "10ms" to "1m")"},
    {kInRedis + "[redis]\naddress = \"a:1\"\nadress = \"b:1\"\n",
     "redis.adress: unknown option in [redis]. Did you mean redis.address?"},
};
// clang-format on

}  // namespace

TEST_CASE("what [redis] says is held together, and each mistake has its message") {
  if (pawl::redis::library_version().empty())
    SKIP("built without Redis");
  CHECK(problems(kWhole).empty());
  CHECK(problems(kInRedis + "[redis]\naddress = \"a:1\"\n").empty());
  for (const Case& wrong : kCases) {
    CAPTURE(wrong.config);
    CHECK(problems(wrong.config) == wrong.problem);
  }
}

TEST_CASE("a build without Redis says so") {
  if (!pawl::redis::library_version().empty())
    SKIP("built with Redis");
  CHECK(problems(kWhole) ==
        "calls.lease_store = \"redis\": this pawl was built without Redis. Build it with "
        "-DPAWL_REDIS=ON, or use \"postgres\"");
}

TEST_CASE("a handler that must know of every attempt is refused leases in Redis") {
  if (pawl::redis::library_version().empty())
    SKIP("built without Redis");
  const std::string handler = kInRedis + "[redis]\naddress = \"a:1\"\n" + R"([[handler]]
topics = ["charges"]
http = { url = "https://api.example/charges", body = "{value}" }
)";
  const std::string reason =
      "Redis may lose a lease, and with it the record that an outcome is unknown. ";
  const std::string instead = ", or set calls.lease_store = \"postgres\"";
  CHECK(problems(handler).empty());
  CHECK(problems(handler + "on_unknown = \"call\"\n").empty());
  CHECK(problems(handler + "on_unknown = \"halt\"\n") ==
        "handler[1].on_unknown: " + reason + "Set on_unknown = \"call\"" + instead);
  CHECK(problems(handler + "remote_dedup_window = \"1h\"\n") ==
        "handler[1].remote_dedup_window: " + reason + "Remove it" + instead);
}

TEST_CASE("no password of [redis] is listed") {
  if (pawl::redis::library_version().empty())
    SKIP("built without Redis");
  const auto listed = load_in_force(request(kRequired + kWhole));
  int hidden = 0;
  for (const OptionInForce& one : listed) {
    CAPTURE(one.option);
    CHECK_THAT(toml_text(one.value), !ContainsSubstring("hunter2"));
    if (one.option.starts_with("redis.") && toml_text(one.value) == "\"***\"")
      ++hidden;
  }
  CHECK(hidden == 2);
  const auto by_reference = load_in_force(
      request(kRequired + kInRedis + "[redis]\naddress = \"a:1\"\npassword = \"${PASSWORD}\"\n", {},
              {{"PASSWORD", "hunter2"}}));
  for (const OptionInForce& one : by_reference) {
    if (one.option == "redis.password")
      CHECK(toml_text(one.value) == "\"${PASSWORD}\"");
    if (one.option == "redis.sentinel_password")
      CHECK(toml_text(one.value) == "\"\"");
  }
}

TEST_CASE("what [redis] says is what is connected to") {
  if (pawl::redis::library_version().empty())
    SKIP("built without Redis");
  const auto whole = redis_settings(load(request(kRequired + kWhole)).redis);
  CHECK_FALSE(whole.address.has_value());
  REQUIRE(whole.sentinels.size() == 2);
  CHECK(whole.sentinels[0] == pawl::redis::Address{"10.0.0.1", 26379});
  CHECK(whole.sentinels[1] == pawl::redis::Address{"::1", 26379});
  CHECK(whole.master == "mymaster");
  CHECK(whole.credentials.user == "pawl");
  CHECK(whole.credentials.password == "hunter2");
  CHECK(whole.sentinel_credentials.user == "watcher");
  CHECK(whole.sentinel_credentials.password == "hunter2");
  CHECK(whole.database == 3);
  REQUIRE(whole.tls.has_value());
  CHECK(whole.tls->ca_file == "ca.pem");
  CHECK(whole.tls->certificate == "own.pem");
  CHECK(whole.tls->private_key == "/etc/own.key");
  CHECK(whole.tls->server_name == "redis.example");
  CHECK(whole.timeout == 250ms);
  const auto plain =
      redis_settings(load(request(kRequired + kInRedis + "[redis]\naddress = \"a:1\"\n")).redis);
  auto elsewhere = request(kRequired + kWhole);
  elsewhere.path = "conf/a.toml";
  CHECK(load(elsewhere).redis.ca_file == "conf/ca.pem");
  CHECK(load(elsewhere).redis.private_key == "/etc/own.key");
  CHECK(plain.address == pawl::redis::Address{"a", 1});
  CHECK_FALSE(plain.tls.has_value());
}
