// What operators use, where a handler takes batches.
#include "audited_site.hpp"
#include "prelude.hpp"

namespace {

constexpr const char* kBatch = R"toml(batch = true
sql = [
  "INSERT INTO ledger SELECT * FROM unnest({header:event-id}::text[], {/account}::text[], {/amount}::bigint[])",
  """UPDATE accounts SET balance = balance + sum, entries = entries + n
       FROM (SELECT account, sum(amount), count(*) AS n
               FROM unnest({/account}::text[], {/amount}::bigint[]) AS p (account, amount) GROUP BY 1) s
      WHERE id = account""",
]
)toml";

}  // namespace

TEST_CASE("check describes statements for batches, and says which one is wrong") {
  Site site;
  site.handler = kBatch;
  auto outcome = site.run({"check"});
  INFO(outcome.out << outcome.err);
  CHECK(outcome.code == 0);
  CHECK_THAT(outcome.out, ContainsSubstring("handler[0].sql[1] (for batches)"));
  site.sql("ALTER TABLE ledger ALTER amount TYPE date USING NULL");
  outcome = site.run({"check"});
  CHECK(outcome.code == 1);
  CHECK_THAT(outcome.out,
             ContainsSubstring("handler[0].sql[0] (for batches): column \"amount\" is of "
                               "type date but expression is of type bigint"));
}

TEST_CASE("the books agree after batches, and after the replay of what died in them") {
  AuditedSite site;
  site.handler = kBatch;
  site.more = "on_failure = \"dead-letter\"\n" + site.more;
  site.sql("ALTER TABLE ledger ADD CONSTRAINT known CHECK (account <> 'stranger')");
  site.pay_many(0, "e", 100);
  site.pay(0, "e7", "a", "1");
  site.pay(0, "bad", "stranger", "1");
  site.pay_many(0, "f", 100);
  site.pay(0, "f7", "a", "1");
  site.drain();
  CHECK(site.sql("SELECT count(DISTINCT xmin::text) < 50 FROM ledger") == "t");
  CHECK(site.sql("SELECT idempotency_key FROM pawl.dead_letters WHERE status = 'dead'") == "bad");
  CHECK(site.findings().empty());
  CHECK(site.findings({"--fast"}).empty());

  site.sql("ALTER TABLE ledger DROP CONSTRAINT known");
  const auto replay = site.run({"dlq", "replay", "--all"});
  INFO(replay.out << replay.err);
  CHECK(replay.code == 0);
  CHECK(site.sql("SELECT count(*) FROM ledger") == "201");
  CHECK(site.sql("SELECT balance || ' ' || entries FROM accounts WHERE id = 'a'") == "200 200");
  CHECK(site.findings().empty());
}

TEST_CASE("run logs at its start which handlers take batches") {
  Site site;
  site.handler = kBatch + std::string("name = \"payment\"\n");
  site.pay(0, "one", "a", "1");
  const auto outcome = site.run({"run", "--drain", "--set", "log.level=debug"});
  CHECK(outcome.code == 0);
  CHECK_THAT(outcome.err, ContainsSubstring("batch_configured handlers=payment max_messages=500"));
}
