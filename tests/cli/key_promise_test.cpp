// What keys vouch for although some were removed: positions that are set back, duplicates that come
// late, and removals that meet either.
#include <pqxx/pqxx>

#include "aging_site.hpp"
#include "prelude.hpp"

namespace {

/// Only adds up: nothing but its key keeps a payment from being added twice.
constexpr const char* kBalance = R"toml(sql = [
  "UPDATE accounts SET balance = balance + {/amount}::bigint, entries = entries + 1 WHERE id = {/account}",
]
)toml";
constexpr const char* kBatchBalance = R"toml(batch = true
sql = [
  """UPDATE accounts SET balance = balance + sum, entries = entries + n
       FROM (SELECT account, sum(amount), count(*) AS n
               FROM unnest({/account}::text[], {/amount}::bigint[]) AS p (account, amount) GROUP BY 1) s
      WHERE id = account""",
]
)toml";

}  // namespace

TEST_CASE("offsets are not set back beyond the keys that are left, unless forced") {
  Aging site;
  site.pay_many_before(600min, 0, "old", 5);
  site.pay_many(0, "young", 5);
  site.drain();
  site.age_keys("10 hours", "key LIKE 'old%'");
  REQUIRE(site.prune().code == 0);

  const auto refused = site.run(set_to(site, "3"));
  CHECK(refused.code == 2);
  CHECK_THAT(refused.err, ContainsSubstring("before offset 5") && ContainsSubstring("--force") &&
                              ContainsSubstring("second time"));
  CHECK(site.stored(0) == 9);
  CHECK(site.run({"offsets", "reset", "--topic", site.topic, "--to", "earliest"}).code == 2);
  CHECK(site.stored(0) == 9);

  CHECK(site.run(set_to(site, "5")).code == 0);
  site.drain();
  CHECK(site.payments() == "10");

  auto forced = set_to(site, "3");
  forced.emplace_back("--force");
  const auto set = site.run(forced);
  CHECK(set.code == 0);
  CHECK_THAT(set.out, ContainsSubstring("NOT recognized"));
  CHECK(site.stored(0) == 2);
}

TEST_CASE("a late duplicate renews its key, so that it is a duplicate when it comes once more") {
  const auto* mode = GENERATE("alone", "in flights", "in batches", "replayed");
  INFO(mode);
  Aging site;
  site.handler = std::string(mode) == "in batches" ? kBatchBalance : kBalance;
  const std::vector<std::string> how =
      std::string(mode) == "alone" ? std::vector<std::string>{"--set", "consumer.pipeline=1"}
                                   : std::vector<std::string>{};
  if (std::string(mode) == "replayed")
    site.more = "[failures]\non_failure = \"dead-letter\"\n";
  // Within the retention of an hour of the first ones; by now their keys are older than that.
  site.pay_many_before(75min, 0, "e", 5);
  site.drain(how);
  site.age_keys("75 minutes");
  if (std::string(mode) == "replayed") {
    for (int i = 0; i < 5; ++i)
      site.pay_before(50min, 0, "e" + std::to_string(i), "1 ");
    // As a conflict, by the other payload; the same keys come as duplicates once that is ignored.
    site.drain(how);
    REQUIRE(site.sql("SELECT count(*) FROM pawl.dead_letters") == "5");
    const auto replayed =
        site.run({"dlq", "replay", "--all", "--set", "idempotency.conflict=ignore"});
    INFO(replayed.out << replayed.err);
    REQUIRE(replayed.code == 0);
  } else {
    site.pay_many_before(50min, 0, "e", 5);
    site.drain(how);
    REQUIRE(site.sql("SELECT duplicate_count FROM pawl.processed_kafka_offsets") == "5");
  }
  const auto pruned = site.prune();
  INFO(pruned.out << pruned.err);
  CHECK(pruned.code == 0);

  const auto audit = site.run({"audit"});
  INFO(audit.out << audit.err);
  CHECK(audit.code == 0);

  // What the operator may do without --force has no second effect.
  std::vector<std::string> again{"--set", "idempotency.conflict=ignore"};
  again.insert(again.end(), how.begin(), how.end());
  CHECK(site.run(set_to(site, "5")).code == 0);
  site.drain(again);
  CHECK(site.sql("SELECT balance FROM accounts WHERE id = 'a'") == "5");
  CHECK(site.stored(0) == 9);
}

TEST_CASE("the books agree when keys were renewed after a position was set back") {
  Aging site;
  site.pay_many_before(75min, 0, "e", 5);
  site.drain();
  site.age_keys("75 minutes");
  REQUIRE(site.run(set_to(site, "0")).code == 0);
  site.drain();
  site.pay_many_before(50min, 0, "e", 3);
  site.drain();
  CHECK(site.keys("created_at > now() - interval '10 minutes'") == "3");
  const auto audit = site.run({"audit"});
  INFO(audit.out << audit.err);
  CHECK(audit.code == 0);
}

TEST_CASE("a removal that meets a key while it is renewed leaves it") {
  Aging site;
  site.pay_many_before(600min, 0, "e", 10);
  site.drain();
  site.age_keys("10 hours");
  pqxx::connection connection(site.url);
  pqxx::work renewal(connection);
  renewal.exec(
      "SELECT pawl.renew_keys((SELECT scope_id FROM pawl.idempotency_scopes), ARRAY['e3'])");
  // Its lock_timeout of a second may end before this machine sees that it waits.
  const auto prune = site.start_prune();
  site.wait_for_sql(
      "SELECT count(*) FROM pg_stat_activity"
      " WHERE application_name = 'pawl retention' AND wait_event_type = 'Lock'",
      "1");
  renewal.commit();
  REQUIRE(prune->wait(kDeadline).code.has_value());
  REQUIRE(site.prune().code == 0);
  CHECK(site.sql("SELECT string_agg(key, ' ') FROM pawl.idempotency_keys") == "e3");
}

TEST_CASE("keys are renewed together or the message is tried again") {
  Aging site;
  site.pay_many(0, "e", 3);
  site.drain();
  pqxx::connection connection(site.url);
  pqxx::work renewal(connection);
  try {
    renewal.exec(
        "SELECT pawl.renew_keys((SELECT scope_id FROM pawl.idempotency_scopes),"
        " ARRAY['e0', 'gone'])");
    FAIL("a key that is gone was renewed");
  } catch (const pqxx::sql_error& error) {
    CHECK(error.sqlstate() == "PW011");
  }
}

TEST_CASE("a removal and a position that is set back never miss each other") {
  Aging site;
  site.pay_many(0, "e", 1);
  site.drain();
  const std::string prune =
      "SELECT cutoff FROM pawl.prune_cutoff((SELECT scope_id FROM pawl.idempotency_scopes), "
      "3600000,"
      " now(), true, '{}', '{}', '{}', '{}')";
  const std::string require =
      "SELECT pawl.require_unpruned((SELECT consumer_id FROM pawl.consumers),"
      " '" +
      site.topic + "', NULL)";
  pqxx::connection pruner(site.url);
  pqxx::connection operator_connection(site.url);
  operator_connection.set_session_var("lock_timeout", "200ms");
  {
    pqxx::work removal(pruner);
    removal.exec(prune);
    pqxx::work change(operator_connection);
    // Waits for the removal, which may have seen the position that is about to change.
    CHECK_THROWS_AS(change.exec(require), pqxx::sql_error);
    change.abort();
    removal.commit();
    pqxx::work again(operator_connection);
    try {
      again.exec(require);
      FAIL("a position is set back behind a removal");
    } catch (const pqxx::sql_error& error) {
      CHECK(error.sqlstate() == "PW010");
    }
  }
  site.sql("UPDATE pawl.idempotency_scopes SET pruned_to = NULL");
  {
    pqxx::work change(operator_connection);
    change.exec(require);
    pruner.set_session_var("lock_timeout", "200ms");
    pqxx::work removal(pruner);
    CHECK_THROWS_AS(removal.exec(prune), pqxx::sql_error);
  }
}

TEST_CASE("dlq replay of what is older than the keys that are left needs --force") {
  Aging site;
  site.more = "[failures]\nmax_attempts = 1\non_failure = \"dead-letter\"\n";
  site.sql("ALTER TABLE ledger ADD CONSTRAINT small CHECK (amount < 100)");
  site.pay_before(600min, 0, "big", "100");
  site.pay_many_before(600min, 0, "e", 5);
  site.drain();
  site.age_keys("10 hours");
  REQUIRE(site.prune().code == 0);
  site.sql("ALTER TABLE ledger DROP CONSTRAINT small");

  const auto refused = site.run({"dlq", "replay", "--all"});
  INFO(refused.out << refused.err);
  CHECK(refused.code == 2);
  CHECK_THAT(refused.err, ContainsSubstring("--force"));
  CHECK(site.sql("SELECT status FROM pawl.dead_letters") == "dead");
  CHECK(site.run({"dlq", "replay", "--all", "--force"}).code == 0);
  CHECK(site.sql("SELECT status FROM pawl.dead_letters") == "replayed");
  CHECK(site.payments() == "6");
}
