// What check and the start line say of handlers that share a topic: what is so, of each of them.
#include "prelude.hpp"
#include "site.hpp"

namespace {

constexpr const char* kBatch = R"toml(name = "bulk"
when = '{header:event-id} != "call"'
batch = true
sql = "INSERT INTO ledger SELECT * FROM unnest({header:event-id}::text[], {/account}::text[], {/amount}::bigint[])"
)toml";

constexpr const char* kSql = R"toml(name = "sql"
when = '{header:event-id} != "call"'
sql = "INSERT INTO ledger VALUES ({header:event-id}, {/account}, {/amount}::bigint)"
)toml";

/// A handler of the same topic that calls what is not there; `more` stands in it as well.
std::string call(const Site& site, const std::string& more = "") {
  return "[[handler]]\nname = \"call\"\nscope = \"calls\"\ntopics = [\"" + site.topic +
         "\"]\nhttp = { url = \"http://127.0.0.1:9/\" }\n" + more;
}

std::string checked(Site& site) {
  const auto outcome = site.run({"check"});
  INFO(outcome.out << outcome.err);
  CHECK(outcome.code == 0);
  return outcome.out;
}

/// The log of a start, with its details.
std::string start_of(Site& site) {
  const auto outcome = site.run({"run", "--drain", "--set", "log.level=debug"});
  INFO(outcome.out << outcome.err);
  CHECK(outcome.code == 0);
  return outcome.err;
}

}  // namespace

TEST_CASE("a batch beside a call is a batch, and it is said that the call holds it back") {
  Site site;
  site.handler = kBatch;
  site.more = call(site);
  site.pay_many(0, "e", 200);
  const auto log = start_of(site);
  CHECK_THAT(log, ContainsSubstring("batch_configured handlers=bulk max_messages=500"));
  const auto note = "a call of handler call blocks all later messages of its partition of topic " +
                    site.topic + " until it finishes, including those of handler bulk";
  CHECK_THAT(log, ContainsSubstring(note));
  CHECK_THAT(checked(site), ContainsSubstring(note));
  CHECK(std::stoi(site.sql("SELECT count(DISTINCT xmin::text) FROM ledger")) < 50);
}

TEST_CASE("a handler beside one with concurrency is said to run one message at a time") {
  Site site;
  site.handler = kSql;
  site.more = call(site, "concurrency = 4\n");
  site.pay_many(0, "e", 10);
  const auto note = "handler sql processes its messages of topic " + site.topic +
                    " one at a time, next to messages of other handlers, "
                    "because handler call has concurrency";
  const auto log = start_of(site);
  CHECK_THAT(log, ContainsSubstring(note));
  CHECK_THAT(log, !ContainsSubstring("pipeline_configured"));
  CHECK_THAT(checked(site), ContainsSubstring(note));
}

TEST_CASE("batches that a policy takes apart are not said to share transactions") {
  Site site;
  site.handler = kBatch + "on_failure = \"park\"\n"s;
  site.pay_many(0, "e", 10);
  const auto log = start_of(site);
  CHECK_THAT(log, !ContainsSubstring("batch_configured"));
  const auto note =
      "handler bulk processes the messages of its batches one by one, because on_failure = "
      "\"park\"";
  CHECK_THAT(log, ContainsSubstring(note));
  CHECK_THAT(checked(site), ContainsSubstring(note));
}

TEST_CASE("check refuses the combinations that a topic cannot have, with their handler") {
  Site site;
  site.handler = kBatch;
  site.more = call(site, "concurrency = 4\n");
  auto outcome = site.run({"check"});
  CHECK(outcome.code == 2);
  CHECK_THAT(outcome.out + outcome.err,
             ContainsSubstring("handler[0].batch: another handler of topic " + site.topic +
                               " has concurrency"));
  site.handler = kSql;
  site.more = call(site, "missing_key = \"process\"\n");
  outcome = site.run({"check"});
  CHECK(outcome.code == 2);
  CHECK_THAT(outcome.out + outcome.err,
             ContainsSubstring("handler[1].missing_key = \"process\": ") &&
                 ContainsSubstring("makes external calls, which require an idempotency key"));
}
