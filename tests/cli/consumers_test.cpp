#include <csignal>
#include <nlohmann/json.hpp>

#include "prelude.hpp"
#include "site.hpp"

TEST_CASE("a consumer that is forgotten holds back no keys of a scope that it shared") {
  Site site;
  site.handler += "scope = \"shared\"\n";
  site.pay_many(0, "e", 3);
  REQUIRE(site.run({"run", "--drain"}).code == 0);
  const auto kept = site.group;
  site.group = "backfill-of-" + kept;
  REQUIRE(site.run({"run", "--drain", "--set", "kafka.known_consumers=[\"" + kept + "\"]", "--set",
                    "failures.on_failure=dead-letter", "--set", "failures.max_attempts=1"})
              .code == 0);
  const auto backfill = site.group;
  site.pay(0, "bad", "a", "\"no number\"");
  REQUIRE(site.run({"run", "--drain", "--set", "failures.on_failure=dead-letter", "--set",
                    "failures.max_attempts=1"})
              .code == 0);
  const auto json =
      nlohmann::json::parse(site.run({"consumers", "list", "--json"}).out).at("consumers");
  REQUIRE(json.size() == 2);
  for (const auto& consumer : json) {
    CHECK(consumer.at("scopes") == nlohmann::json::array({"shared"}));
    CHECK(consumer.at("partitions") == 1);
    CHECK(consumer.at("processes").empty());
    CHECK(consumer.at("dead_letters") == (consumer.at("group") == backfill ? 1 : 0));
  }
  site.group = kept;

  SECTION("its letters and its history stay, and the other consumer has all of its own") {
    const auto before = site.stored(0);
    const auto outcome = site.run({"consumers", "remove", backfill, "--because", "it is done"});
    INFO(outcome.out << outcome.err);
    CHECK(outcome.code == 0);
    CHECK_THAT(outcome.out, ContainsSubstring("1 stored offset, 1 share in a key scope") &&
                                ContainsSubstring("1 unresolved dead letter is kept"));
    CHECK(site.stored(0) == before);
    CHECK(site.sql("SELECT count(*) FROM pawl.scope_sources") == "1");
    CHECK(site.sql("SELECT count(*) FROM pawl.dead_letters") == "1");
    CHECK(site.sql("SELECT concat_ws(' ', action, from_offset, coalesce(to_offset::text, '-'), "
                   "reason, actor = session_user) FROM pawl.offset_history "
                   "ORDER BY history_id DESC LIMIT 1") == "remove 4 - it is done t");
    // It does not begin anew by itself.
    site.group = backfill;
    const auto again = site.run({"run", "--drain"});
    CHECK(again.code == 4);
    CHECK_THAT(again.err, ContainsSubstring("pawl offsets set --config /"));
  }
  SECTION("its letters go when that is asked for") {
    CHECK(site.run({"consumers", "remove", backfill, "--because", "x", "--dead-letters"}).code ==
          0);
    CHECK(site.sql("SELECT count(*) FROM pawl.dead_letters") == "0");
  }
}

TEST_CASE("a consumer is not forgotten while one of its processes lives, nor when it is unknown") {
  Site site;
  site.pay_many(0, "e", 1);
  const auto child = site.start();
  site.wait_for_stored(0, 0);
  const auto live = site.run({"consumers", "remove", site.group, "--because", "x"});
  CHECK(live.code == 1);
  CHECK_THAT(live.err, ContainsSubstring("has running processes") &&
                           ContainsSubstring(std::to_string(child->pid())));
  CHECK(site.stored(0) == 0);
  CHECK(site.sql("SELECT count(*) FROM pawl.scope_sources") == "1");
  const auto unknown = site.run({"consumers", "remove", "nobody", "--because", "x"});
  CHECK(unknown.code == 2);
  CHECK_THAT(unknown.err, ContainsSubstring(site.group));
  CHECK(site.run({"consumers", "remove", site.group}).code == 2);
  child->kill(SIGKILL);
  child->wait(kDeadline);
  // What it last told counts for twenty seconds.
  site.sql("UPDATE pawl.processes SET seen_at = seen_at - interval '1 minute'");
  wait_until(
      [&] { return site.run({"consumers", "remove", site.group, "--because", "x"}).code == 0; },
      kDeadline, "the killed process' sessions to end");
  CHECK(site.stored(0) == -2);
}
