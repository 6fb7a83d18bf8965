// What is decided about a topic's messages before any of them is read: the table of
// docs/concurrency.md, "Several handlers of one topic".
#include "handlers/topic_plan.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <algorithm>

using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::EndsWith;
using Catch::Matchers::StartsWith;
using pawl::FailurePolicy;
using pawl::MissingKey;
using pawl::handlers::Grouping;
using pawl::handlers::HandlerTraits;
using pawl::handlers::plan_topics;
using pawl::handlers::TopicPlan;
using pawl::handlers::TopicPlans;
using pawl::handlers::traits_of;

namespace {

HandlerTraits plain(const std::string& label) {
  HandlerTraits traits;
  traits.label = label;
  traits.topics = {"t"};
  traits.plans_ahead = true;
  return traits;
}

HandlerTraits code(const std::string& label) {
  auto traits = plain(label);
  traits.plans_ahead = false;
  return traits;
}

HandlerTraits call(const std::string& label = "call") {
  auto traits = code(label);
  traits.calls = true;
  return traits;
}

HandlerTraits batch(const std::string& label = "bulk") {
  auto traits = code(label);
  traits.batches = true;
  return traits;
}

HandlerTraits with(HandlerTraits traits, std::uint32_t concurrency) {
  traits.concurrency = concurrency;
  return traits;
}

HandlerTraits with(HandlerTraits traits, FailurePolicy policy) {
  traits.on_failure = policy;
  return traits;
}

TopicPlans plan(const std::vector<HandlerTraits>& handlers) {
  return plan_topics(handlers, {});
}

/// "log: single, batch"
std::string shape(const TopicPlans& plans) {
  const auto& plan = plans.of("t");
  std::string text = plan.order == TopicPlan::Order::kLog ? "log:" : "key:";
  for (const auto& planned : plan.handlers) {
    switch (planned.grouping) {
      case Grouping::kSingle:
        text += " single";
        break;
      case Grouping::kPipeline:
        text += " pipeline";
        break;
      case Grouping::kBatch:
        text += " batch";
        break;
    }
  }
  return text;
}

/// "0.batch 1.order_by"
std::string refused(const TopicPlans& plans) {
  std::string text;
  for (const auto& refusal : plans.refusals)
    text += (text.empty() ? "" : " ") + std::to_string(refusal.handler) + "." + refusal.option;
  return text;
}

}  // namespace

TEST_CASE("handlers without concurrency complete their topic in the log's order, grouped by kind") {
  CHECK(shape(plan({plain("a")})) == "log: pipeline");
  CHECK(shape(plan({code("a")})) == "log: single");
  CHECK(shape(plan({batch()})) == "log: batch");
  CHECK(shape(plan({plain("a"), code("b"), batch()})) == "log: pipeline single batch");
  const auto plans = plan({plain("a"), code("b"), batch()});
  CHECK(plans.notes.empty());
  CHECK(plans.refusals.empty());
  CHECK_FALSE(plans.of("t").calls);
  CHECK(plans.of("t").max_ahead == 1);
}

TEST_CASE("a call without concurrency leaves the log's order and the groups of the others") {
  const auto plans = plan({call(), plain("sql"), batch()});
  CHECK(shape(plans) == "log: single pipeline batch");
  CHECK(plans.of("t").calls);
  CHECK(plans.of("t").max_ahead == 1);
  REQUIRE(plans.notes.size() == 1);
  CHECK_THAT(plans.notes[0], StartsWith("a call of handler call blocks") &&
                                 ContainsSubstring("topic t") &&
                                 ContainsSubstring("handler sql, handler bulk"));
  // Alone it holds back its own, as any handler does.
  CHECK(plan({call()}).notes.empty());
}

TEST_CASE("concurrency of one handler makes the whole topic complete in the order of order_by") {
  const auto plans = plan({with(plain("fast"), 4), plain("sql"), call()});
  CHECK(shape(plans) == "key: single single single");
  CHECK(plans.of("t").max_ahead == 1000);
  REQUIRE(plans.notes.size() == 2);
  CHECK_THAT(plans.notes[0],
             StartsWith("handler sql processes its messages of topic t one at a time") &&
                 EndsWith("because handler fast has concurrency"));
  CHECK_THAT(plans.notes[1], StartsWith("handler call processes its messages"));
  CHECK(plan({with(plain("fast"), 4)}).notes.empty());

  auto near = with(plain("fast"), 4);
  near.max_ahead = 20;
  auto far = plain("sql");
  far.max_ahead = 5000;
  // That of a handler without concurrency says nothing.
  CHECK(plan({near, far}).of("t").max_ahead == 20);
}

TEST_CASE("concurrency and batches of one topic are refused, whichever handler has them") {
  CHECK(refused(plan({with(batch(), 2)})) == "0.concurrency");
  CHECK(refused(plan({batch(), with(plain("a"), 2)})) == "0.batch");
  CHECK(refused(plan({with(call(), 2), batch()})) == "1.batch");
  // Of another topic they may be.
  auto elsewhere = with(plain("a"), 2);
  elsewhere.topics = {"u"};
  CHECK(refused(plan({batch(), elsewhere})).empty());
  // Each is told once, of however many topics.
  auto everywhere = with(batch(), 2);
  everywhere.topics = {"t", "u"};
  CHECK(refused(plan({everywhere})) == "0.concurrency");
}

TEST_CASE("batches of a handler that parks go one by one, and that is noted") {
  for (const auto policy : {FailurePolicy::kPark, FailurePolicy::kRetryLater}) {
    const auto plans = plan({with(batch(), policy), plain("sql")});
    CHECK(shape(plans) == "log: single pipeline");
    REQUIRE(plans.notes.size() == 1);
    CHECK_THAT(plans.notes[0],
               StartsWith("handler bulk processes") && ContainsSubstring("one by one"));
  }
  // The policy of another one is not its own.
  const auto plans = plan({batch(), with(plain("sql"), FailurePolicy::kPark)});
  CHECK(shape(plans) == "log: batch pipeline");
  CHECK(plans.notes.empty());
}

TEST_CASE("what parks needs the record key's order only where messages run out of order") {
  auto by_account = with(call(), FailurePolicy::kPark);
  by_account.order_by = "{/account}";
  CHECK(refused(plan({by_account, plain("sql")})).empty());
  CHECK(refused(plan({with(by_account, 2), plain("sql")})) == "0.order_by");
  // Also that of a handler that does not park: others wait behind its messages.
  auto other = plain("sql");
  other.order_by = "{/account}";
  CHECK(refused(plan({with(with(call(), 2), FailurePolicy::kPark), other})) == "1.order_by");
  CHECK(refused(plan({with(call(), 2), other})).empty());
}

TEST_CASE("a call needs a key, and messages without any are in no pipeline") {
  auto unkeyed = call();
  unkeyed.missing_key = MissingKey::kProcess;
  CHECK(refused(plan({unkeyed})) == "0.missing_key");
  auto sql = plain("sql");
  sql.has_key = false;
  sql.missing_key = MissingKey::kProcess;
  CHECK(shape(plan({sql})) == "log: single");
  auto bulk = batch();
  bulk.has_key = false;
  bulk.missing_key = MissingKey::kProcess;
  CHECK(shape(plan({bulk})) == "log: batch");
}

TEST_CASE("sizes of one, and a pooler, leave each message alone") {
  pawl::Options options;
  options.consumer.pipeline = 1;
  options.batch.max_messages = 1;
  CHECK(shape(plan_topics({plain("a"), batch()}, options)) == "log: single single");
  CHECK(plan_topics({plain("a"), batch()}, options).of("t").most_in_hand == 1);
  options.consumer.pipeline = 64;
  options.postgres.pooled = true;
  CHECK(shape(plan_topics({plain("a")}, options)) == "log: single");
}

TEST_CASE("what a process that ends may have had in progress, of each topic") {
  pawl::Options options;
  options.consumer.pipeline = 64;
  options.batch.max_messages = 500;
  const auto most = [&](const std::vector<HandlerTraits>& handlers) {
    return plan_topics(handlers, options).of("t").most_in_hand;
  };
  CHECK(most({code("a")}) == 1);
  CHECK(most({call()}) == 1);
  CHECK(most({call(), plain("a")}) == 64);
  CHECK(most({plain("a"), batch()}) == 500);
  // No more than there are threads for, however many wait in the window.
  options.consumer.concurrency = 16;
  CHECK(most({with(call(), 2), plain("a")}) == 16);
  options.consumer.concurrency = 2000;
  CHECK(most({with(call(), 2), plain("a")}) == 1000);
  CHECK(plan_topics({}, options).of("other").most_in_hand == 1);
}

TEST_CASE("options say what a handler does, and registered code what only it knows") {
  pawl::Options options;
  options.idempotency.key = "{key}";
  pawl::HandlerOptions sql;
  sql.topics = {"t"};
  sql.sql = {{"SELECT 1"}};
  auto bulk = sql;
  bulk.batch = true;
  pawl::HandlerOptions http;
  http.topics = {"t"};
  http.http.url.written = "http://127.0.0.1/";
  pawl::HandlerOptions named;
  named.name = "mine";
  named.topics = {"t"};
  options.handlers = {sql, bulk, http, named};
  const auto traits = traits_of(options, nullptr);
  CHECK((!traits[0].batches && !traits[0].calls));
  CHECK(traits[1].batches);
  CHECK(traits[2].calls);
  CHECK((!traits[3].calls && !traits[3].batches && traits[3].label == "mine"));

  pawl::Registry registry;
  registry.leased_handler(
      "mine",
      {.call = [](pawl::Lease&, const pawl::Message&) -> pawl::Response { return std::nullopt; }});
  CHECK(traits_of(options, &registry)[3].calls);
}
