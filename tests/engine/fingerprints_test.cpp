#include "engine/fingerprints.hpp"

#include <functional>

#include "prelude.hpp"

using namespace pawl::engine;
using namespace pawl::ledger;

namespace {

Options options() {
  Options options;
  options.idempotency.key = "{header:id}";
  HandlerOptions first;
  first.topics = {"t", "u"};
  first.sql.push_back({"INSERT INTO a VALUES ({/b})", 1});
  HandlerOptions second;
  second.name = "code";
  second.topics = {"u"};
  second.when = "{header:type} == \"x\"";
  options.handlers = {first, second};
  return options;
}

std::string change(const std::string& topic, const std::function<void(Options&)>& how) {
  auto changed = options();
  how(changed);
  return difference(fingerprints(options(), {}).at(topic), fingerprints(changed, {}).at(topic));
}

}  // namespace

TEST_CASE("processes differ in what changes a topic's effects, and it is said in what") {
  CHECK(change("t", [](auto&) {}).empty());
  CHECK(change("t", [](auto& o) { o.handlers[0].sql[0].text += " "; }) == "handlers");
  CHECK(change("t", [](auto& o) { o.handlers[0].sql[0].expect_rows.reset(); }) == "handlers");
  CHECK(change("t", [](auto& o) { o.handlers[0].sql.clear(); }) == "handlers");
  CHECK(change("t", [](auto& o) { o.handlers[0].batch = true; }) == "handlers");
  CHECK(change("t", [](auto& o) { o.handlers[0].isolation = "serializable"; }) == "handlers");
  CHECK(change("t", [](auto& o) { o.handlers[0].response.text = "SELECT 1"; }) == "handlers");
  CHECK(change("t", [](auto& o) {
          o.handlers[0].sql[0].name = o.handlers[0].response.statement = "a";
        }) == "handlers");
  // In which order the topic completes; how far ahead, or which of two numbers, is no matter.
  CHECK(change("t", [](auto& o) { o.handlers[0].concurrency = 2; }) == "handlers");
  CHECK(change("u", [](auto& o) { o.handlers[0].concurrency_window = 20; }).empty());
  CHECK(change("t", [](auto& o) { o.handlers[0].max_response = 2048; }) == "keys");
  CHECK(change("u", [](auto& o) { o.handlers[1].name = "other"; }) == "handlers");
  CHECK(change("u", [](auto& o) { std::swap(o.handlers[0], o.handlers[1]); }) ==
        "handlers, conditions");
  CHECK(change("t", [](auto& o) { o.handlers[0].when = "{key} == \"a\""; }) == "conditions");
  CHECK(change("t", [](auto& o) { o.failures.unmatched = pawl::Unmatched::kSkip; }) ==
        "conditions");
  CHECK(change("t", [](auto& o) { o.idempotency.key = "{key}"; }) == "keys");
  CHECK(change("t", [](auto& o) { o.handlers[0].scope = "shared"; }) == "keys");
  CHECK(change("t", [](auto& o) { o.handlers[0].conflict = pawl::Conflict::kIgnore; }) == "keys");
  CHECK(change("t", [](auto& o) { o.handlers[0].missing_key = pawl::MissingKey::kSkip; }) ==
        "keys");
  CHECK(change("t", [](auto& o) {
          o.handlers[0].failures.emplace().on_failure = pawl::FailurePolicy::kPark;
        }) == "policies");
  CHECK(change("t", [](auto& o) { o.failures.on_failure = pawl::FailurePolicy::kPark; }) ==
        "policies");
  // Of another topic, or without an effect on what is stored.
  CHECK(change("t", [](auto& o) { o.handlers[1].when.clear(); }).empty());
  CHECK(change("t", [](auto& o) { o.handlers[0].name = "label"; }).empty());
  CHECK(change("t", [](auto& o) { o.handlers[0].sql[0].name = "label"; }).empty());
  CHECK(change("t", [](auto& o) { o.handlers[0].timeout *= 2; }).empty());
  CHECK(change("t", [](auto& o) { o.handlers[0].failures.emplace().max_attempts = 9; }).empty());
  CHECK(change("t", [](auto& o) { o.consumer.pipeline = 1; }).empty());
}

TEST_CASE("a key from code is another one than the template") {
  pawl::Registry registry;
  registry.key("code", [](const pawl::Message&) { return std::string("k"); });
  CHECK(difference(fingerprints(options(), {}).at("u"),
                   fingerprints(options(), registry).at("u")) == "keys");
  CHECK(difference(fingerprints(options(), {}).at("t"), fingerprints(options(), registry).at("t"))
            .empty());
}

TEST_CASE("fields of a fingerprint do not run into each other") {
  auto one = options();
  one.handlers[0].sql = {{"ab", 1}, {"c", 1}};
  auto other = options();
  other.handlers[0].sql = {{"a", 1}, {"bc", 1}};
  CHECK(difference(fingerprints(one, {}).at("t"), fingerprints(other, {}).at("t")) == "handlers");
}
