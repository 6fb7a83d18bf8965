#include <nlohmann/json.hpp>

#include "failing_site.hpp"
#include "prelude.hpp"
#include "site.hpp"

TEST_CASE("try shows what a message would do, and rolls it back") {
  Site site;
  site.pay(0, "e-1", "a", "7");
  const auto tried = site.run({"try", "--topic", site.topic, "--partition", "0", "--offset", "0"});
  CHECK(tried.code == 0);
  CHECK_THAT(tried.out,
             ContainsSubstring("key       e-1 in scope ") &&
                 ContainsSubstring("INSERT INTO ledger (event_id, account, amount) VALUES") &&
                 ContainsSubstring("$1 = text, 3 bytes: e-1") &&
                 ContainsSubstring("rows      public.accounts: 0 inserted, 1 updated, 0 deleted") &&
                 ContainsSubstring("rows      public.ledger: 1 inserted, 0 updated, 0 deleted") &&
                 EndsWith("\nRESULT    success; rolled back, so nothing is stored\n"));
  CHECK(site.sql("SELECT count(*) FROM ledger") == "0");
  CHECK(site.sql("SELECT count(*) FROM pawl.idempotency_keys") == "0");
  const auto json_of = [&site](int code) {
    const auto outcome = site.run({"try", "-t", site.topic, "-p", "0", "--offset", "0", "--json"});
    INFO(outcome.out << outcome.err);
    CHECK(outcome.code == code);
    return nlohmann::json::parse(outcome.out);
  };
  const auto json = json_of(0);
  CHECK(json.at("idempotency_key") == "e-1");
  CHECK(json.at("result") == "rolled-back");
  CHECK(json.at("statements").size() == 2);
  CHECK(json.at("statements")[0].at("parameters")[0] == "e-1");
  CHECK(
      json.at("rows")[1] ==
      nlohmann::json{{"table", "public.ledger"}, {"inserted", 1}, {"updated", 0}, {"deleted", 0}});
  CHECK(json.at("error").is_null());
  CHECK(json.at("processed_before").is_null());

  // Once it is processed, another attempt is no failure.
  CHECK(site.run({"run", "--drain"}).code == 0);
  const auto again = site.run({"try", "--topic", site.topic, "--partition", "0", "--offset", "0"});
  CHECK(again.code == 0);
  CHECK_THAT(again.out,
             ContainsSubstring("\nRESULT    duplicate: already applied at " + site.topic +
                               "[0]@0; `pawl run` would not apply it again.") &&
                 !ContainsSubstring("INSERT"));
  const auto forced =
      site.run({"try", "--topic", site.topic, "--partition", "0", "--offset", "0", "--force"});
  CHECK(forced.code == 1);
  CHECK_THAT(forced.out, ContainsSubstring("\nbefore    duplicate: already applied at ") &&
                             ContainsSubstring("INSERT INTO ledger") &&
                             ContainsSubstring("\nRESULT    failed: ") &&
                             ContainsSubstring("23505"));
  CHECK(site.sql("SELECT count(*) FROM ledger") == "1");
}

TEST_CASE("try knows the topic's id, of Kafka and of what peek has printed") {
  Site site;
  site.pay(0, "e-1", "a", "7");
  const TempDir folder("try");
  const auto file = folder.path() / "m.json";
  const std::vector<std::string> place{"--topic", site.topic, "--partition", "0", "--offset", "0"};
  const auto with = [&](std::vector<std::string> command, const std::vector<std::string>& more) {
    command.insert(command.end(), more.begin(), more.end());
    return site.run(command);
  };
  const std::vector<std::string> key{"--set", "idempotency.key={topic_id}:{partition}:{offset}"};
  auto command = key;
  command.insert(command.begin(), "try");
  const auto tried = with(command, place);
  INFO(tried.out << tried.err);
  CHECK(tried.code == 0);
  CHECK_THAT(tried.out, Catch::Matchers::Matches("[^]*key       [A-Za-z0-9_+/-]{22}:0:0 in [^]*"));

  const auto peeked = with({"partitions", "peek", "--json"}, place);
  REQUIRE(peeked.code == 0);
  write_file(file, peeked.out);
  const auto again = with(command, {"--message", file.string()});
  INFO(again.out << again.err);
  CHECK(again.code == 0);
  CHECK(again.out.substr(again.out.find("key ")).substr(0, 60) ==
        tried.out.substr(tried.out.find("key ")).substr(0, 60));
}

TEST_CASE("try commits nothing that would be applied again") {
  Site site;
  site.handler = "missing_key = \"process\"\n" + site.handler;
  const auto at = [&](const std::string& offset, const std::string& key) {
    return site.run({"try", "--topic", site.topic, "--partition", "0", "--offset", offset,
                     "--commit", "--because", "now", "--set", "idempotency.key=" + key});
  };
  site.pay(0, "e-1", "a", "7");
  CHECK(site.run({"run", "--drain"}).code == 0);
  site.pay(0, "e-2", "a", "7");
  const auto without = at("1", "{header:no-such-header}");
  INFO(without.out << without.err);
  CHECK(without.code == 1);
  CHECK_THAT(without.out, ContainsSubstring("not committed: without an idempotency key"));
  CHECK(site.sql("SELECT count(*) FROM ledger") == "1");

  // A key that another message had.
  site.pay(0, "e-1", "a", "8");
  const auto conflicts = at("2", "{header:event-id}");
  INFO(conflicts.out << conflicts.err);
  CHECK(conflicts.code == 1);
  CHECK_THAT(conflicts.out,
             ContainsSubstring("\nbefore    conflict: its key was applied with another "
                               "payload at " +
                               site.topic + "[0]@0"));
  CHECK(site.sql("SELECT count(*) FROM ledger") == "1");
}

TEST_CASE("try takes a message from a file, and commits it where it is told to") {
  Site site;
  const TempDir folder("try");
  const auto file = folder.path() / "m.json";
  const auto write = [&](const std::string& amount) {
    write_file(file, R"({"topic": ")" + site.topic + R"(", "headers": {"event-id": "e-9"},
                         "value": {"account": "a", "amount": ")" +
                         amount + R"("}})");
  };
  write("many");
  const auto failed = site.run({"try", "--message", file.string()});
  CHECK(failed.code == 1);
  CHECK_THAT(failed.out, ContainsSubstring("\nRESULT    failed: ") && ContainsSubstring("22P02"));

  write("5");
  const auto early =
      site.run({"try", "--message", file.string(), "--commit", "--because", "it waits"});
  CHECK(early.code == 1);
  CHECK_THAT(early.err, ContainsSubstring("run the consumer first"));
  CHECK(site.run({"run", "--drain"}).code == 0);

  // As it stands in Kafka.
  site.pay(0, "e-9", "a", "5");
  write_file(
      file,
      site.run({"partitions", "peek", "--topic", site.topic, "--partition", "0", "--json"}).out);
  const auto committed =
      site.run({"try", "--message", file.string(), "--commit", "--because", "it waits"});
  CHECK(committed.code == 0);
  CHECK_THAT(committed.out, ContainsSubstring("committed: key and effects are stored"));
  CHECK(site.sql("SELECT amount FROM ledger WHERE event_id = 'e-9'") == "5");
  CHECK(site.stored(0) == -1);
  CHECK(site.run({"audit"}).code == 0);
  CHECK_THAT(site.run({"try", "--message", file.string(), "--commit", "--because", "it waits"}).out,
             ContainsSubstring("\nRESULT    duplicate: nothing was done\n"));
  CHECK(site.sql("SELECT string_agg(concat_ws(' ', topic = '" + site.topic +
                 "', partition, from_offset, to_offset, reason, actor = session_user), '|') FROM "
                 "pawl.offset_history WHERE action = 'try'") == "t 0 0 0 it waits t");

  // When its turn comes it is one as well.
  CHECK(site.run({"run", "--drain"}).code == 0);
  CHECK(site.sql("SELECT count(*) FROM ledger") == "1");
  CHECK(site.sql("SELECT duplicate_count FROM pawl.processed_kafka_offsets") == "1");
}

TEST_CASE("try commits nothing that waits for a dead letter of its record key") {
  Failing site("park");
  site.pay_strangers(3);
  site.drain();
  site.mend();
  const std::vector<std::string> third{"try", "--topic",  site.topic, "--partition",
                                       "0",   "--offset", "2",        "--commit"};
  const auto without_reason = site.run(third);
  CHECK(without_reason.code == 2);
  CHECK_THAT(without_reason.err, ContainsSubstring("--because TEXT"));
  auto arguments = third;
  arguments.insert(arguments.end(), {"--because", "it is urgent"});
  const auto refused = site.run(arguments);
  INFO(refused.out << refused.err);
  CHECK(refused.code == 1);
  CHECK_THAT(refused.out, ContainsSubstring("not committed: a dead letter of its record key") &&
                              ContainsSubstring("dlq parked --config") &&
                              ContainsSubstring("--topic " + site.topic));
  CHECK(site.sql("SELECT count(*) FROM ledger") == "0");
  CHECK(site.sql("SELECT count(*) FROM pawl.idempotency_keys") == "0");
  CHECK(site.count("status = 'parked'") == "2");
  CHECK(site.count("true") == "3");
  CHECK(site.sql("SELECT count(*) FROM pawl.offset_history WHERE action = 'try'") == "0");
  // A trial that keeps nothing overtakes nothing.
  arguments.resize(7);
  CHECK(site.run(arguments).code == 0);

  CHECK(site.run({"dlq", "replay", "--all"}).code == 0);
  CHECK(site.sql("SELECT count(*) FROM ledger") == "3");
}

TEST_CASE("try finds what would fail at COMMIT, and what is asked for wrongly") {
  Site site;
  site.pay(0, "e-1", "a", "7");
  site.sql(
      "ALTER TABLE ledger ADD CONSTRAINT twice UNIQUE (account) DEFERRABLE INITIALLY DEFERRED");
  site.sql("INSERT INTO ledger VALUES ('before', 'a', 1)");
  const std::vector<std::string> first{"try", "--topic",  site.topic, "--partition",
                                       "0",   "--offset", "0"};
  const auto late = site.run(first);
  CHECK(late.code == 1);
  CHECK_THAT(late.out, ContainsSubstring("23505"));

  CHECK_THAT(site.run({"try"}).err, ContainsSubstring("--message FILE, or --topic"));
  CHECK_THAT(site.run({"try", "--topic", site.topic}).err,
             ContainsSubstring("--partition, and --offset"));
  CHECK_THAT(site.run({"try", "--topic", site.topic, "--partition", "0", "--offset", "5"}).err,
             ContainsSubstring("[0]@5 cannot be read, because Kafka delivers offsets 0 to 0"));
  CHECK_THAT(site.run({"try", "--message", "/nowhere/m.json"}).err,
             ContainsSubstring("--message /nowhere/m.json: cannot be read"));
}

TEST_CASE("try shows an HTTP handler's request, without secrets, and sends nothing") {
  Site site;
  const TempDir folder("try");
  const auto file = folder.path() / "m.json";
  write_file(folder.path() / "token", "of-the-token");
  const auto token = "${file:" + (folder.path() / "token").string() + "}";
  site.handler =
      "http = { method = \"PUT\", url = \"https://api.example/charges/{/account}?k=" + token +
      "\", headers = { Authorization = \"Bearer " + token +
      "\" }, json = { amount = \"{/amount}\", token = \"" + token + "\" } }\n";
  const auto message = [&](const std::string& value) {
    write_file(file, R"({"topic": ")" + site.topic +
                         R"(", "headers": {"event-id": "e-1"}, "value": )" + value + "}");
    return site.run({"try", "--message", file.string()});
  };
  const auto tried = message(R"({"account": "a/b", "amount": 7})");
  INFO(tried.out << tried.err);
  CHECK(tried.code == 0);
  CHECK_THAT(tried.out,
             ContainsSubstring("request   PUT https://api.example/charges/a%2Fb?k=***\n") &&
                 ContainsSubstring("header    Authorization\n") &&
                 ContainsSubstring(R"("token":"***")") &&
                 Catch::Matchers::Matches("[^]*header    Idempotency-Key: [0-9a-f]{64}\n[^]*") &&
                 !ContainsSubstring("Bearer") && !ContainsSubstring("of-the-token"));
  // Secrets that are written out: neither command shows them.
  site.handler =
      "http = { url = \"https://api.example/charges?k=hunter2&id={/account}\", headers = { "
      "Authorization = \"Bearer hunter2\" }, json = { amount = \"{/amount}\", login = { password "
      "= \"hunter2\", user = \"a\" }, pin = 4711 } }\n";
  const auto written_out = message(R"({"account": "a/b", "amount": 7})");
  INFO(written_out.out << written_out.err);
  CHECK(written_out.code == 0);
  CHECK_THAT(written_out.out,
             ContainsSubstring("request   POST https://api.example/charges?k=***&id=a%2Fb\n") &&
                 ContainsSubstring(R"("login":{"password":"***","user":"a"},"pin":"***")") &&
                 !ContainsSubstring("hunter2") && !ContainsSubstring("4711"));
  for (const auto& config :
       {site.run({"config", "show"}), site.run({"config", "show", "--json"})}) {
    CHECK(config.code == 0);
    CHECK_THAT(config.out, ContainsSubstring("charges?k=***&id={/account}") &&
                               !ContainsSubstring("hunter2") && !ContainsSubstring("4711"));
  }
  const auto lacking = message(R"({"amount": 7})");
  CHECK(lacking.code == 1);
  CHECK_THAT(lacking.out,
             ContainsSubstring("\nRESULT    failed: ") && ContainsSubstring("/account"));
}
