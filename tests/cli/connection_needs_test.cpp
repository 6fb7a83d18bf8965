#include "cli/connection_needs.hpp"

#include "handlers/topic_plan.hpp"
#include "prelude.hpp"

using namespace pawl::cli;
using pawl::ledger::ConnectionLimits;

namespace {

pawl::Options one_handler() {
  pawl::Options options;
  options.idempotency.key = "{key}";
  auto& handler = options.handlers.emplace_back();
  handler.topics = {"t"};
  handler.sql = {{"SELECT 1"}};
  return options;
}

std::size_t needed(const pawl::Options& options) {
  const pawl::Registry registry;
  const auto plans =
      pawl::handlers::plan_topics(pawl::handlers::traits_of(options, &registry), options);
  std::size_t all = 0;
  for (const auto& need : connection_needs(options, &plans, 4))
    all += need.connections;
  return all;
}

}  // namespace

TEST_CASE("a process needs connections for what its configuration has") {
  auto options = one_handler();
  // Workers; delayed retries, blocking sessions, retention; the outbox with 4 lanes, and its watch.
  CHECK(needed(options) == 8 + 3 + 5 + 1);
  options.consumer.workers = 2;
  options.retention.interval = 0ms;
  options.outbox.alert_age = 0ms;
  options.outbox.relay = pawl::RelayOutbox::kOff;
  CHECK(needed(options) == 2 + 2);
  options.handlers[0].concurrency = 4;
  CHECK(needed(options) == 2 + 2 + 16);
  options.handlers[0].concurrency = 1;
  options.handlers[0].sql = {};
  options.handlers[0].http.url.written = "http://h/";
  CHECK(needed(options) == 2 + 2 + 16 + 1);
  options.leases.store = pawl::LeaseStore::kRedis;
  CHECK(needed(options) == 2 + 2 + 16);
  options.monitoring.listen = "127.0.0.1:9464";
  options.dead_letters.topic = "dead";
  options.alerts.notify_channel = "c";
  CHECK(needed(options) == 2 + 2 + 16 + 3 + 1 + 1);
  // Of one that runs: pawl's session and the handler's.
  options.handlers[0].failures = options.failures;
  options.handlers[0].failures->on_failure = pawl::FailurePolicy::kRetryLater;
  CHECK(needed(options) == 2 + 2 + 16 + 3 + 1 + 1 + 2 * 16);
}

TEST_CASE("what a process needs at times only is told from what it always needs") {
  auto options = one_handler();
  const auto at_times = [&] {
    const pawl::Registry registry;
    const auto plans =
        pawl::handlers::plan_topics(pawl::handlers::traits_of(options, &registry), options);
    std::vector<std::string> found;
    for (const auto& need : connection_needs(options, &plans, 4)) {
      if (!need.always)
        found.push_back(need.what);
    }
    return found;
  };
  CHECK(at_times() == std::vector<std::string>{"the outbox and its shards"});
  options.outbox.relay = pawl::RelayOutbox::kOn;
  CHECK(at_times().empty());
  options.handlers[0].concurrency = 4;
  options.failures.on_failure = pawl::FailurePolicy::kRetryLater;
  options.monitoring.listen = "127.0.0.1:9464";
  CHECK(at_times() ==
        std::vector<std::string>{"handlers with concurrency or calls (consumer.concurrency)",
                                 "delayed retries (consumer.concurrency)", "the dashboard"});
}

TEST_CASE("a relay needs connections for the outbox alone") {
  const auto needs = connection_needs(one_handler(), nullptr, 4);
  REQUIRE(needs.size() == 2);
  CHECK(needs[0].connections == 5);
  CHECK(needs[1].connections == 1);
  CHECK((needs[0].always && needs[1].always));
}

TEST_CASE("what a process needs is held against the least limit") {
  struct Row {
    ConnectionLimits limits;
    bool enough;
    const char* text;
  };
  const std::vector<ConnectionNeed> needs{
      {6, "workers", true}, {1, "others", true}, {3, "retries", false}};
  const auto row = GENERATE(values<Row>({
      {{97, {}, {}}, true, ". The server (max_connections) allows 97"},
      {{97, 20, 15}, true, ". The role (CONNECTION LIMIT) allows 15"},
      {{97, 10, 15}, true, ". The database (CONNECTION LIMIT) allows 10"},
      {{97, 9, {}}, true, ". The database (CONNECTION LIMIT) allows 9. If more are needed at once"},
      {{97, 9, 7}, true, ". The role (CONNECTION LIMIT) allows 7. If more are needed at once"},
      {{97, 6, {}}, false, ". The database (CONNECTION LIMIT) allows 6: raise that limit"},
      {{5, 9, 7}, false, ". The server (max_connections) allows 5: raise that limit"},
  }));
  const auto found = connection_finding(needs, &row.limits);
  CHECK(found.enough == row.enough);
  CHECK_THAT(found.text, ContainsSubstring("up to 10 connections to PostgreSQL: 6 for workers, 1 "
                                           "for others, up to 3 for retries") &&
                             ContainsSubstring(row.text));
  const auto pooled = connection_finding(needs, nullptr);
  CHECK(pooled.enough);
  CHECK_THAT(pooled.text, ContainsSubstring("A pooler has them"));
}
