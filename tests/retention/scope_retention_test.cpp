#include "retention/scope_retention.hpp"

#include "prelude.hpp"

using namespace pawl::engine;
using pawl::ledger::PrunableScope;
using pawl::ledger::ScopeUser;

TEST_CASE("the longer of two retentions, of which zero is for ever") {
  CHECK(longer(1h, 2h) == 2h);
  CHECK(longer(2h, 1h) == 2h);
  CHECK(longer(0h, 1h) == 0h);
  CHECK(longer(1h, 0h) == 0h);
}

TEST_CASE("handlers that share a scope of a topic want what the longest of them wants") {
  pawl::Options options;
  options.kafka.group = "g";
  options.retention.keys = 7h;
  const auto add = [&](std::vector<std::string> topics, std::optional<std::string> scope,
                       std::optional<std::chrono::milliseconds> retention) {
    auto& handler = options.handlers.emplace_back();
    handler.topics = std::move(topics);
    handler.scope = std::move(scope);
    handler.retention = retention;
  };
  add({"t", "u"}, std::nullopt, 30h);
  add({"t"}, std::nullopt, std::nullopt);
  add({"t", "v"}, "shared", 1h);
  add({"v"}, "shared", 0h);
  const auto retentions = key_retentions(options);
  CHECK(retentions == KeyRetentions{{{"default/g/t", "t"}, 30h},
                                    {{"default/g/u", "u"}, 30h},
                                    {{"shared", "t"}, 1h},
                                    {{"shared", "v"}, 0h}});
}

TEST_CASE("keys of a scope are kept as long as any of its topics wants it, whoever removes them") {
  struct Case {
    const char* what;
    std::vector<ScopeUser> users;
    KeyRetentions own;
    std::chrono::milliseconds expected;
  };
  const auto mine = [](std::optional<std::chrono::milliseconds> stored) {
    return ScopeUser{true, "t", stored};
  };
  const auto others = [](std::optional<std::chrono::milliseconds> stored) {
    return ScopeUser{false, "t", stored};
  };
  const Case one = GENERATE_COPY(
      Case{"only this process", {mine(9h)}, {{{"s", "t"}, 2h}}, 2h},
      Case{"of two topics the longer one", {mine(9h)}, {{{"s", "t"}, 2h}, {{"s", "u"}, 3h}}, 3h},
      Case{"another scope says nothing", {mine(9h)}, {{{"s", "t"}, 2h}, {{"r", "t"}, 8h}}, 2h},
      Case{"another consumer wants less", {mine(2h), others(1h)}, {{{"s", "t"}, 2h}}, 2h},
      Case{"another consumer wants more", {mine(2h), others(5h)}, {{{"s", "t"}, 2h}}, 5h},
      Case{"another consumer's are for ever", {mine(2h), others(0h)}, {{{"s", "t"}, 2h}}, 0h},
      Case{"another consumer never said", {others(std::nullopt)}, {{{"s", "t"}, 2h}}, 2h},
      Case{"no handler here", {mine(9h)}, {}, 9h},
      Case{"nobody said anything", {mine(std::nullopt)}, {}, 7h});
  CAPTURE(one.what);
  PrunableScope scope;
  scope.name = "s";
  scope.users = one.users;
  CHECK(retention_of(scope, one.own, 7h) == one.expected);
}
