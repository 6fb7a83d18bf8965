#include <nlohmann/json.hpp>

#include "cli/key_estimate.hpp"
#include "prelude.hpp"
#include "site.hpp"

TEST_CASE("keys show tells where a key was first seen, and of a conflict both positions") {
  Site site;
  site.more = "[failures]\non_failure = \"dead-letter\"\n";
  site.pay(0, "first", "a", "1");
  site.pay(0, "twice", "a", "1");
  site.pay(0, "twice", "b", "2");
  REQUIRE(site.run({"run", "--drain"}).code == 0);

  const auto table = site.run({"keys", "show", "twice"});
  INFO(table.out << table.err);
  CHECK(table.code == 0);
  CHECK_THAT(table.out, ContainsSubstring("KEPT SINCE") && ContainsSubstring("conflict") &&
                            ContainsSubstring(site.group));
  const auto json = nlohmann::json::parse(site.run({"keys", "show", "twice", "--json"}).out);
  CHECK(json.at("found") == true);
  CHECK(json.at("keys")[0].at("topic") == site.topic);
  CHECK(json.at("keys")[0].at("offset") == 1);
  CHECK(json.at("keys")[0].at("response_bytes").is_null());
  CHECK(json.at("dead_letters")[0].at("offset") == 2);
  CHECK(json.at("dead_letters")[0].at("reason") == "conflict");

  const auto scope = "default/" + site.group + "/" + site.topic;
  CHECK(site.run({"keys", "show", "first", "--scope", scope}).code == 0);
  CHECK(site.run({"keys", "show", "first", "--scope", "other"}).code == 2);
}

TEST_CASE("keys show tells of a key at which a partition halts") {
  Site site;
  site.pay(0, "good", "a", "1");
  site.pay(0, "bad", "a", "\"much\"");
  REQUIRE(site.run({"run", "--drain", "--set", "failures.max_attempts=1"}).code == 4);
  const auto shown = site.run({"keys", "show", "bad"});
  INFO(shown.out << shown.err);
  CHECK(shown.code == 1);
  CHECK_THAT(shown.out, ContainsSubstring(
                            site.topic + "[0]@1 has this key, and its partition is halted there."));
  const auto json = nlohmann::json::parse(site.run({"keys", "show", "bad", "--json"}).out);
  REQUIRE(json.at("halts").size() == 1);
  CHECK(json.at("halts")[0].at("offset") == 1);
  // Not those that begin, or end, like it.
  for (const auto* key : {"ba", "ad", "good"}) {
    CAPTURE(key);
    CHECK(nlohmann::json::parse(site.run({"keys", "show", key, "--json"}).out).at("halts").empty());
  }
}

TEST_CASE("keys show prints the response, bounded, and never as what steers a terminal") {
  Site site;
  site.handler =
      "sql = \"SELECT 1\"\nresponse = \"SELECT convert_from(decode({/account}, 'hex'), 'UTF8')"
      " WHERE {/amount}::int = 1 UNION ALL SELECT NULL WHERE {/amount}::int = 2\"\n";
  site.pay(0, "text", "68c3bc0a1b5b31", "1");
  site.pay(0, "none", "", "2");
  REQUIRE(site.run({"run", "--drain"}).code == 0);
  site.handler = "sql = \"SELECT 1\"\nresponse = \"SELECT decode({/account}, 'hex')\"\n";
  site.pay(0, "bytes", "00ff41", "1");
  REQUIRE(site.run({"run", "--drain"}).code == 0);
  const auto show = [&](const std::string& key, std::vector<std::string> more = {}) {
    more.insert(more.begin(), {"keys", "show", key});
    const auto shown = site.run(more);
    CHECK(shown.code == 0);
    return shown.out;
  };
  const auto json = [&](const std::string& key, std::vector<std::string> more = {}) {
    more.emplace_back("--json");
    return nlohmann::json::parse(show(key, more)).at("keys")[0];
  };
  CHECK_THAT(show("text"), ContainsSubstring("hex, 7 bytes: 68c3bc0a1b5b31\n"));
  CHECK_THAT(show("text", {"--max-bytes", "4"}),
             ContainsSubstring("text, 7 bytes: h\xc3\xbc\n... (cut; --max-bytes 7 shows all)"));
  CHECK_THAT(show("text", {"--max-bytes", "2"}),
             ContainsSubstring("text, 7 bytes: h... (cut; --max-bytes 7 shows all)"));
  CHECK_THAT(show("bytes"), ContainsSubstring("hex, 3 bytes: 00ff41"));
  CHECK(show("none").find("Response") == std::string::npos);
  CHECK(json("text").at("response") == "h\xc3\xbc\n\x1b[1");
  CHECK(json("text", {"--max-bytes", "1"}).at("response") ==
        nlohmann::json{{"text", "h"}, {"cut", true}});
  CHECK(json("text").at("response_bytes") == 7);
  CHECK(json("bytes").at("response") == nlohmann::json{{"base64", "AP9B"}});
  CHECK(json("none").at("response").is_null());
  CHECK(site.run({"keys", "show", "text", "--max-bytes", "0"}).code == 2);
}

TEST_CASE("keys show says that a key is not there, and whether it may have been removed") {
  Site site;
  site.pay(0, "first", "a", "1");
  REQUIRE(site.run({"run", "--drain"}).code == 0);
  const auto never = site.run({"keys", "show", "nobody"});
  CHECK(never.code == 1);
  CHECK_THAT(never.out, ContainsSubstring("not stored") &&
                            ContainsSubstring("retention has not removed any key"));
  site.sql("UPDATE pawl.idempotency_scopes SET pruned_to = '2026-01-31T00:00:00Z'");
  const auto perhaps = site.run({"keys", "show", "nobody"});
  CHECK(perhaps.code == 1);
  CHECK_THAT(perhaps.out, ContainsSubstring("2026-01-31T00:00:00Z"));
}

TEST_CASE("keys show says where else in the database a key was applied, and how to see it") {
  Site site;
  site.pay(0, "first", "a", "1");
  REQUIRE(site.run({"run", "--drain"}).code == 0);
  const auto scope = "default/" + site.group + "/" + site.topic;
  const auto first = site.group;
  Site other;
  other.url = site.url;
  other.pay(0, "second", "b", "1");
  REQUIRE(other.run({"run", "--drain"}).code == 0);

  const auto text = other.run({"keys", "show", "first"});
  INFO(text.out << text.err);
  CHECK(text.code == 1);
  CHECK_THAT(text.out,
             ContainsSubstring("default/" + other.group + " has applied no message with this") &&
                 ContainsSubstring("In other scopes of this database it was applied") &&
                 ContainsSubstring("--scope " + scope) &&
                 ContainsSubstring("configuration of default/" + first));
  CHECK(other.run({"keys", "show", "first", "--scope", scope}).code == 0);
  const auto json = nlohmann::json::parse(other.run({"keys", "show", "first", "--json"}).out);
  CHECK(json.at("found") == false);
  CHECK(json.at("keys").empty());
  REQUIRE(json.at("other_scopes").size() == 1);
  CHECK(json.at("other_scopes")[0].at("scope") == scope);
  CHECK(json.at("other_scopes")[0].at("consumer") == "default/" + first);

  // What was asked for and found is all there is to say; and so is what is nowhere.
  CHECK(other.run({"keys", "show", "second"}).out.find("In other scopes") == std::string::npos);
  CHECK(other.run({"keys", "show", "nobody"}).out.find("In other scopes") == std::string::npos);
  const auto narrow = other.run({"keys", "show", "second", "--scope", scope});
  CHECK(narrow.code == 1);
  CHECK_THAT(narrow.out, ContainsSubstring("was applied in scope " + scope) &&
                             ContainsSubstring("In other scopes"));
}

TEST_CASE("keys show finds a key in the form in which it is stored") {
  Site site;
  const std::string longest(300, 'k');
  site.pay(0, longest, "a", "1");
  REQUIRE(site.run({"run", "--drain"}).code == 0);
  const auto found = site.run({"keys", "show", longest});
  CHECK(found.code == 0);
}

TEST_CASE("the layout that keys estimate assumes is the one that PostgreSQL makes") {
  Site site;
  site.pay(0, "first", "a", "1");
  REQUIRE(site.run({"run", "--drain"}).code == 0);
  site.sql("TRUNCATE pawl.idempotency_keys");
  site.sql(
      "INSERT INTO pawl.idempotency_keys (scope_id, key, payload_hash, source_id, partition,"
      " kafka_offset) SELECT 1, lpad(g::text, 36, '0'), g, 1, 0, g"
      " FROM generate_series(1, 50000) g");
  const auto table =
      std::stod(site.sql("SELECT pg_relation_size('pawl.idempotency_keys')")) / 50000;
  const auto index =
      std::stod(site.sql("SELECT pg_relation_size('pawl.idempotency_keys_pkey')")) / 50000;
  const auto estimate = pawl::cli::estimate_keys({1, 24h, 36}, std::nullopt);
  CHECK(estimate.table_per_row > table * 0.97);
  CHECK(estimate.table_per_row < table * 1.03);
  CHECK(estimate.index_per_row > index * 0.97);
  CHECK(estimate.index_per_row < index * 1.03);

  site.sql("ANALYZE pawl.idempotency_keys");
  const auto json = nlohmann::json::parse(
      site.run({"keys", "estimate", "--rate", "100", "--retention", "1d", "--json"}).out);
  CHECK(json.at("measured") == true);
  const auto text = site.run({"keys", "estimate", "--rate", "100", "--key-bytes", "36"});
  CHECK(text.code == 0);
  CHECK_THAT(text.out,
             ContainsSubstring("kept for 7d") && ContainsSubstring("WAL of the keys per day"));
  CHECK(site.run({"keys", "estimate", "--rate", "0"}).code == 2);

  site.more =
      "name = \"pay\"\nretention = \"30d\"\n[[handler]]\ntopics = [\"other\"]\n"
      "name = \"short\"\nretention = \"1d\"\nsql = \"SELECT 1\"\n";
  const auto of = [&](std::vector<std::string> more) {
    more.insert(more.begin(), {"keys", "estimate", "--rate", "1", "--key-bytes", "36"});
    return site.run(more).out;
  };
  CHECK_THAT(of({}), ContainsSubstring("kept for 30d"));
  CHECK_THAT(of({"--handler", "short"}), ContainsSubstring("kept for 24h"));
  CHECK_THAT(of({"--handler", "short", "--retention", "2d"}), ContainsSubstring("kept for 2d"));
  const auto unknown = site.run({"keys", "estimate", "--rate", "1", "--handler", "other"});
  CHECK(unknown.code == 2);
  CHECK_THAT(unknown.err, ContainsSubstring("no handler has this name; there is pay, short"));
}

TEST_CASE("check and run warn about a key that looks like the ID of an entity, and continue") {
  Site site;
  site.pay(0, "first", "a", "1");
  const auto check = site.run({"check", "--set", "idempotency.key={key}"});
  INFO(check.out);
  CHECK(check.code == 0);
  CHECK_THAT(check.out, ContainsSubstring("Handlers        WARN  ") && ContainsSubstring("{key}"));
  const auto run = site.run({"run", "--drain", "--set", "idempotency.key={key}"});
  CHECK(run.code == 0);
  CHECK_THAT(run.err + run.out, ContainsSubstring("looks like the ID of an entity"));
  CHECK(site.run({"check"}).out.find("looks like the ID") == std::string::npos);
}
