// What a handler has of its own, and what it takes from the sections, in options made in code.
#include "handlers/router.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <optional>
#include <string>

#include "handlers/topic_entries.hpp"

using Catch::Matchers::ContainsSubstring;
using pawl::FailurePolicy;
using pawl::handlers::Liability;
using pawl::handlers::Router;

namespace {

pawl::Options two_handlers() {
  pawl::Options options;
  options.idempotency.key = "{key}";
  for (const auto* topic : {"t", "u"}) {
    pawl::HandlerOptions handler;
    handler.topics = {topic};
    handler.sql = {{"SELECT 1"}};
    options.handlers.push_back(handler);
  }
  return options;
}

}  // namespace

// HandlerOptions.failures was a whole policy, "halt" unless the handler said otherwise, so that
// options.failures reached no handler of options that did not come from a file.
TEST_CASE("options.failures is the policy of each handler that has none of its own") {
  auto options = two_handlers();
  options.failures.on_failure = FailurePolicy::kPark;
  options.failures.max_attempts = 7;
  options.failures.circuit_breaker = 3;
  const pawl::Registry registry;
  const Router router(options, registry);
  REQUIRE(router.bindings().size() == 2);
  for (const auto& binding : router.bindings())
    CHECK(binding->failures == options.failures);
}

TEST_CASE("a handler's own policy stands instead of options.failures as a whole") {
  auto options = two_handlers();
  options.failures.on_failure = FailurePolicy::kPark;
  options.handlers[1].failures.emplace().on_failure = FailurePolicy::kSkip;
  const pawl::Registry registry;
  const Router router(options, registry);
  CHECK(router.bindings()[0]->failures == options.failures);
  CHECK(router.bindings()[1]->failures == options.handlers[1].failures);
}

TEST_CASE("the warning about a key that looks like the ID of an entity quotes the key once") {
  auto options = two_handlers();
  options.idempotency.key = "{/customer_id}";
  const pawl::Registry registry;
  const auto warnings = key_warnings(Router(options, registry));
  REQUIRE(warnings.size() == 2);
  const auto& text = warnings.front();
  const auto first = text.find("{/customer_id}");
  CHECK(first != std::string::npos);
  CHECK(text.find("{/customer_id}", first + 1) == std::string::npos);
  // Of a longer one it says which part.
  options.idempotency.key = "c-{/customer_id}";
  CHECK_THAT(key_warnings(Router(options, registry)).front(),
             ContainsSubstring("c-{/customer_id}") && ContainsSubstring("({/customer_id})"));
}

TEST_CASE("key_checked ends the warning about a key, for all handlers or for one") {
  auto options = two_handlers();
  options.idempotency.key = "{/customer_id}";
  const pawl::Registry registry;
  CHECK_THAT(key_warnings(Router(options, registry)).front(),
             ContainsSubstring("set key_checked = true"));
  options.handlers[0].key_checked = true;
  CHECK(key_warnings(Router(options, registry)).size() == 1);
  options.idempotency.key_checked = true;
  CHECK(key_warnings(Router(options, registry)).empty());
  options.handlers[0].key_checked = false;
  CHECK(key_warnings(Router(options, registry)).size() == 1);
}

TEST_CASE("a topic's handlers are those of its name, else of the pattern that means it") {
  auto options = two_handlers();
  options.handlers[0].topics = {"t", "^orders\\."};
  options.handlers[1].topics = {"orders.eu", "^pay"};
  options.handlers[1].concurrency = 3;
  const pawl::Registry registry;
  const Router router(options, registry);
  const auto handler_of = [&](std::string_view topic) -> int {
    pawl::MessageFields fields;
    fields.topic = topic;
    fields.value = "{}";
    const pawl::Message message(fields);
    pawl::message::JsonReader reader;
    pawl::message::JsonView json(reader, message);
    const auto* const binding = router.route(message, json);
    return binding == nullptr ? -1 : binding == router.bindings()[0].get() ? 0 : 1;
  };
  for (int time = 0; time < 2; ++time) {
    CHECK(handler_of("t") == 0);
    CHECK(handler_of("orders.us") == 0);
    CHECK(handler_of("orders.eu") == 1);
    CHECK(handler_of("payments") == 1);
    CHECK(handler_of("other") == -1);
  }
  CHECK(router.plan_of("payments").max_ahead > 1);
  CHECK(router.plan_of("orders.eu").max_ahead > 1);
  CHECK(router.plan_of("orders.us").max_ahead == 1);
  CHECK(router.plan_of("orders.us").pipelines());
  CHECK_FALSE(router.plan_of("payments").pipelines());
  CHECK_FALSE(router.plan_of("other").pipelines());
}

TEST_CASE("which messages of a handler may be why a process ended") {
  struct Row {
    const char* what;
    bool http;
    bool key;
    bool on_duplicate;
    Liability liability;
    bool lease_tells;
  };
  const auto row = GENERATE(
      Row{"a call of pawl's", true, false, false, Liability::kNone, false},
      Row{"with a key of the application's", true, true, false, Liability::kAny, false},
      Row{"with its code for duplicates", true, false, true, Liability::kAny, false},
      Row{"a call of the application's", false, false, false, Liability::kCall, true},
      Row{"whose key is found without its code", false, false, true, Liability::kAny, true},
      Row{"whose key is not", false, true, false, Liability::kAny, false});
  CAPTURE(row.what);
  auto options = two_handlers();
  auto& handler = options.handlers[1];
  handler.name = "call";
  handler.sql = {};
  pawl::Registry registry;
  if (row.http) {
    handler.http.url.written = "http://127.0.0.1/";
  } else {
    registry.leased_handler(
        "call", {.call = [](pawl::Lease&, const pawl::Message&) { return pawl::Response(); }});
  }
  if (row.key)
    registry.key("call", [](const pawl::Message&) { return std::optional<std::string>("k"); });
  if (row.on_duplicate)
    registry.on_duplicate("call", [](const pawl::Message&, const pawl::Response&) {});
  const Router router(options, registry);
  // SQL, of the other topic.
  REQUIRE(router.bound_to("t").size() == 1);
  CHECK(router.bound_to("t")[0]->liability == Liability::kAny);
  CHECK_FALSE(router.bound_to("t")[0]->lease_tells());
  CHECK(router.bound_to("u")[0]->liability == row.liability);
  CHECK(router.bound_to("u")[0]->lease_tells() == row.lease_tells);
  CHECK(router.bound_to("v").empty());
}

TEST_CASE("what a configuration writes to, its patterns do not mean") {
  auto options = two_handlers();
  options.handlers[0].topics = {"^"};
  options.handlers[0].sql = {{"SELECT pawl.publish('echo', 'k', 'v')"}};
  options.dead_letters.topic = "letters";
  options.outbox.state_topic = "state";
  const auto entries = pawl::handlers::topic_entries(options);
  for (const auto* topic : {"echo", "letters", "state", "__internal"}) {
    CAPTURE(topic);
    CHECK(entries.entry_of(topic).empty());
  }
  CHECK(entries.entry_of("other") == "^");
  CHECK(entries.entry_of("u") == "u");

  const auto meant = pawl::handlers::with_topics(options, {"a", "echo", "u", "b"});
  CHECK(meant.handlers[0].topics == std::vector<std::string>{"a", "b"});
  CHECK(meant.handlers[1].topics == std::vector<std::string>{"u"});
}
