#include <algorithm>
#include <sstream>

#include "ledger/register_view.hpp"
#include "postgres/session.hpp"
#include "prelude.hpp"
#include "site.hpp"

TEST_CASE("check finds everything in place and changes nothing") {
  Site site(2);
  const auto outcome = site.run({"check"});
  INFO(outcome.out << outcome.err);
  CHECK(outcome.code == 0);
  CHECK_THAT(outcome.out, ContainsSubstring("Everything is in place") &&
                              ContainsSubstring("topic " + site.topic + ", 2 partitions") &&
                              ContainsSubstring("ok      handler[0].sql[1]"));
  CHECK(site.sql("SELECT count(*) FROM pawl.consumers") == "0");
  CHECK(site.run({"check", "--set", "kafka.group_protocol=consumer"}).code == 0);
}

TEST_CASE("check says everything that is wrong at once") {
  Site site;
  site.sql("DROP TABLE ledger");
  site.sql("ALTER TABLE accounts DROP COLUMN entries");
  site.more =
      "[[handler]]\n"
      "topics = [\"no-such-topic\"]\n"
      "function = \"app.no_such_function\"\n";
  const auto outcome = site.run({"check"});
  INFO(outcome.out);
  CHECK(outcome.code == 1);
  CHECK_THAT(outcome.out,
             ContainsSubstring("handler[0].sql[0]: relation \"ledger\" does not exist"));
  CHECK_THAT(outcome.out, ContainsSubstring("handler[0].sql[1]: column \"entries\""));
  CHECK_THAT(outcome.out, ContainsSubstring("app.no_such_function"));
  CHECK_THAT(outcome.out, ContainsSubstring("topic no-such-topic does not exist"));
  CHECK_THAT(outcome.out, ContainsSubstring("4 things are wrong"));
}

TEST_CASE("check says of a response what it must be") {
  struct Case {
    std::string handler;
    int code;
    std::string says;
  };
  const auto [handler, code, says] = GENERATE(
      Case{"response = \"SELECT balance FROM accounts WHERE id = {/account}\"", 0,
           "ok      handler[0].response\n"},
      Case{"response = \"SELECT id, balance FROM accounts\"", 1,
           "handler[0].response: it returns 2 columns; a response is one column"},
      Case{"response = \"SELECT missing FROM accounts\"", 1,
           "handler[0].response: column \"missing\" does not exist"},
      Case{"batch = true\nresponse = \"SELECT n, v FROM unnest({/account}::text[]) WITH ORDINALITY"
           " AS m (v, n)\"",
           0, "ok      handler[0].response (for batches)\n"},
      Case{"batch = true\nresponse = \"SELECT {/account}::text[]\"", 1,
           "handler[0].response (for batches): it returns 1 columns; the responses of a batch are "
           "two columns"});
  CAPTURE(handler);
  Site site;
  site.handler = "sql = \"SELECT 1\"\n" + handler + "\n";
  const auto outcome = site.run({"check"});
  INFO(outcome.out);
  CHECK(outcome.code == code);
  CHECK_THAT(outcome.out, ContainsSubstring(says));
}

TEST_CASE("check says whether the topic of dead letters is there") {
  Site site;
  site.more = "[dead_letters]\ntopic = \"no-such-dead\"\n";
  auto outcome = site.run({"check"});
  INFO(outcome.out);
  CHECK(outcome.code == 1);
  CHECK_THAT(outcome.out, ContainsSubstring("dead_letters.topic no-such-dead does not exist"));

  const auto topic = KafkaBroker::shared().new_topic("dead", 3);
  site.more = "[dead_letters]\ntopic = \"" + topic + "\"\n";
  outcome = site.run({"check"});
  CHECK(outcome.code == 0);
  CHECK_THAT(outcome.out, ContainsSubstring("dead_letters.topic " + topic + ", 3 partitions"));
}

TEST_CASE("check says of topics that SQL publishes to whether Kafka has them") {
  Site site;
  const auto there = KafkaBroker::shared().new_topic("published", 1);
  site.handler = "sql = [\"SELECT pawl.publish('" + there +
                 "', {/account}, {value})\", \"SELECT pawl.publish({/account}, 'k', 'v')\"]\n"
                 "name = \"pay\"\n";
  const auto good = site.run({"check"});
  INFO(good.out);
  CHECK(good.code == 0);
  CHECK_THAT(good.out, ContainsSubstring("topic " + there + ", to which ") &&
                           ContainsSubstring("handler[0].sql[0] (pay) publishes"));

  site.handler =
      "sql = [\"SELECT pawl.publish('no-such-topic', {/account}, {value})\", \"SELECT "
      "pawl.publish(topic => 'no topic', key => 'k', value => 'v')\"]\n";
  const auto bad = site.run({"check"});
  INFO(bad.out);
  CHECK(bad.code == 1);
  CHECK_THAT(bad.out,
             ContainsSubstring("handler[0].sql[0] publishes to topic no-such-topic, and its "
                               "messages would be set apart: topic no-such-topic does not "
                               "exist in Kafka; create it: kafka-topics.sh "
                               "--bootstrap-server " +
                               site.bootstrap + " --create --topic no-such-topic") &&
                 ContainsSubstring("handler[0].sql[1]: pawl.publish refuses \"no topic\"") &&
                 ContainsSubstring("2 things are wrong"));
}

TEST_CASE("check refuses a JSON field that is bound to bytea, and says what to write") {
  Site site;
  site.sql("CREATE TABLE raw (payload bytea)");
  site.handler = R"toml(sql = [
  "INSERT INTO raw VALUES ({value})",
  "INSERT INTO raw VALUES ({/data})",
  "INSERT INTO raw VALUES ({header:data|/data}::bytea)",
  "INSERT INTO raw VALUES (convert_to({/data}::text, 'UTF8'))",
  "INSERT INTO raw VALUES (decode({/data}::text, 'base64'))",
]
)toml";
  const auto outcome = site.run({"check"});
  INFO(outcome.out);
  CHECK(outcome.code == 1);
  CHECK_THAT(outcome.out, ContainsSubstring("2 things are wrong"));
  CHECK_THAT(
      outcome.out,
      ContainsSubstring(
          "handler[0].sql[1]: {/data} is text of the message's JSON, but its parameter "
          "is bytea") &&
          ContainsSubstring("convert_to({/data}::text, 'UTF8'), decode({/data}::text, 'base64') or "
                            "decode({/data}::text, 'hex')") &&
          ContainsSubstring("handler[0].sql[2]: {header:data|/data} is text"));
  CHECK_THAT(outcome.out, ContainsSubstring("ok      handler[0].sql[0]") &&
                              ContainsSubstring("ok      handler[0].sql[3]") &&
                              ContainsSubstring("ok      handler[0].sql[4]"));
}

TEST_CASE("check finds rights that are missing, of pawl's tables and of the handlers'") {
  Site site;
  const auto role = "weak_" + site.sql("SELECT replace(gen_random_uuid()::text, '-', '_')");
  site.sql("CREATE ROLE " + role + " LOGIN");
  site.sql("GRANT USAGE ON SCHEMA pawl TO " + role);
  site.sql("GRANT SELECT ON ALL TABLES IN SCHEMA pawl TO " + role);
  site.sql("GRANT SELECT, UPDATE ON accounts TO " + role);
  site.url.replace(site.url.find("postgres@"), 9, role + "@");
  const auto outcome = site.run({"check"});
  INFO(outcome.out);
  CHECK(outcome.code == 1);
  CHECK_THAT(outcome.out, ContainsSubstring("INSERT on pawl.consumer_topics, pawl.consumers, ") &&
                              ContainsSubstring("DELETE on pawl.dead_letters, ") &&
                              ContainsSubstring(". This gives them: pawl migrate grants ") &&
                              ContainsSubstring("--role " + role + " | psql -h "));
  // One finding for all of them, and the handler's.
  CHECK_THAT(outcome.out, ContainsSubstring("2 things are wrong"));
  CHECK_THAT(outcome.out,
             ContainsSubstring("handler[0].sql[0]: permission denied for table ledger"));
  CHECK_THAT(outcome.out, ContainsSubstring("ok      handler[0].sql[1]"));
}

TEST_CASE("check names each right that migrate grants gives a consumer, but for those of pages") {
  Site site;
  const auto role = "revoked_" + site.sql("SELECT replace(gen_random_uuid()::text, '-', '_')");
  site.sql("CREATE ROLE " + role + " LOGIN");
  site.sql(run_script(scripts_folder() / "migrate", {"grants", "--role", role}));
  pawl::postgres::SessionSettings settings;
  settings.url = site.url;
  settings.url.replace(settings.url.find("postgres@"), 9, role + "@");
  pawl::postgres::Session session(settings);
  const pawl::ledger::RoleUse all{true, true, true};
  CHECK(pawl::ledger::missing_rights(session, "pawl", all) == std::vector<std::string>{});
  std::istringstream granted(
      site.sql("SELECT string_agg(privilege_type || ' on pawl.' || table_name, E'\\n' ORDER BY 1)"
               " FROM information_schema.role_table_grants WHERE grantee = '" +
               role + "'"));
  std::vector<std::string> unnamed;
  std::size_t count = 0;
  for (std::string right; std::getline(granted, right); ++count) {
    site.sql("REVOKE " + right + " FROM " + role);
    if (pawl::ledger::missing_rights(session, "pawl", all) != std::vector{right})
      unnamed.push_back(right);
    site.sql("GRANT " + right + " TO " + role);
  }
  CHECK(count > 60);
  CHECK(unnamed == std::vector<std::string>{"SELECT on pawl.offset_history"});
  // A function of two forms is named once.
  site.sql(
      "REVOKE EXECUTE ON FUNCTION pawl.publish(text, bytea, bytea, jsonb, text),"
      " pawl.publish(text, text, text, jsonb, text) FROM " +
      role);
  CHECK(pawl::ledger::missing_rights(session, "pawl", all) ==
        std::vector<std::string>{"EXECUTE on function pawl.publish"});
}

TEST_CASE(
    "check finds a right on a function that is missing, though it is called with parameters") {
  Site site;
  site.sql("CREATE SCHEMA app");
  site.sql(
      "CREATE FUNCTION app.apply(topic text, \"partition\" integer, \"offset\" bigint, key bytea,"
      " value bytea, headers jsonb, timestamp_ms bigint) RETURNS void STRICT LANGUAGE sql AS ''");
  site.sql("REVOKE EXECUTE ON ALL FUNCTIONS IN SCHEMA app FROM PUBLIC");
  const auto role = "weak_" + site.sql("SELECT replace(gen_random_uuid()::text, '-', '_')");
  site.sql("CREATE ROLE " + role + " LOGIN");
  site.sql("GRANT USAGE ON SCHEMA pawl, app TO " + role);
  site.sql("GRANT ALL ON ALL TABLES IN SCHEMA pawl, public TO " + role);
  site.url.replace(site.url.find("postgres@"), 9, role + "@");
  const auto other = KafkaBroker::shared().new_topic("function", 1);
  site.more = "[[handler]]\ntopics = [\"" + other + "\"]\nfunction = \"app.apply\"\n";
  const auto outcome = site.run({"check"});
  INFO(outcome.out);
  CHECK(outcome.code == 1);
  CHECK_THAT(outcome.out, ContainsSubstring("permission denied for function apply") &&
                              ContainsSubstring("1 thing is wrong"));
}

TEST_CASE("check names the migration command when the schema is missing, and still asks Kafka") {
  Site site;
  site.url = PostgresServer::shared().create_empty_database("cli");
  const auto outcome = site.run({"check"});
  CHECK(outcome.code == 1);
  CHECK_THAT(outcome.out, ContainsSubstring("pawl migrate up --config /") &&
                              ContainsSubstring("topic " + site.topic));
}

TEST_CASE("check and run refuse the schema of a build from before 0.1.0, and say what to do") {
  Site site;
  site.sql("DELETE FROM pawl.schema_migrations WHERE set_name = 'pawl' AND version > 1");
  site.sql("UPDATE pawl.schema_migrations SET file = '0001_core.sql' WHERE set_name = 'pawl'");
  if (GENERATE(false, true)) {
    site.sql(
        "INSERT INTO pawl.schema_migrations (set_name, version, file, checksum)"
        " VALUES ('pawl', 2, '0002_dead_letters.sql', '')");
  }
  const auto require_told = [](const std::string& text) {
    CHECK_THAT(text,
               ContainsSubstring("by a build of pawl from before 0.1.0") &&
                   ContainsSubstring("use that build") &&
                   ContainsSubstring("prints the command for that: pawl migrate up --config "));
  };
  const auto checked = site.run({"check"});
  CHECK(checked.code == 1);
  require_told(checked.out);
  const auto started = site.run({"run"});
  CHECK(started.code == 1);
  require_told(started.err);
}

TEST_CASE("check refuses the schema of a newer release") {
  Site site;
  site.sql(
      "INSERT INTO pawl.schema_migrations (set_name, version, file, checksum)"
      " VALUES ('pawl', 1000, '1000_later.sql', '')");
  const auto outcome = site.run({"check"});
  CHECK(outcome.code == 1);
  CHECK_THAT(outcome.out, ContainsSubstring("schema version 1000") &&
                              ContainsSubstring("run a newer version of this program"));
}

TEST_CASE("check says when neither server answers, with the password hidden") {
  Site site;
  site.url = "postgresql://user:hunter2@127.0.0.1:9/nothing";
  site.bootstrap = "127.0.0.1:9";
  const auto outcome = site.run({"check"});
  CHECK(outcome.code == 1);
  CHECK_THAT(outcome.out, ContainsSubstring("postgres.url") &&
                              ContainsSubstring("kafka.bootstrap_servers") &&
                              !ContainsSubstring("hunter2"));
  CHECK_THAT(outcome.err, !ContainsSubstring("hunter2"));
}

TEST_CASE("check finds a database that is not UTF8") {
  Site site;
  auto& server = PostgresServer::shared();
  const auto name = "latin_" + site.sql("SELECT replace(gen_random_uuid()::text, '-', '_')");
  const auto admin = server.url();
  {
    ChildProcess psql("psql",
                      {"--no-psqlrc", "--quiet", "--dbname", admin, "--command",
                       "CREATE DATABASE " + name +
                           " ENCODING 'LATIN1' LC_COLLATE 'C' LC_CTYPE 'C' TEMPLATE template0"});
    REQUIRE(psql.wait(kDeadline).success());
  }
  site.url = server.url(name);
  const auto outcome = site.run({"check"});
  CHECK(outcome.code == 1);
  CHECK_THAT(outcome.out, ContainsSubstring("encoding is LATIN1"));
}

TEST_CASE("check finds a configuration that is wrong, and a wrong or lost database") {
  Site site;
  const auto config = site.run({"check", "--set", "kafka.grup=x"});
  CHECK(config.code == 2);
  CHECK_THAT(config.out, ContainsSubstring("group"));

  site.pay_many(0, "e", 3);
  REQUIRE(site.run({"run", "--drain"}).code == 0);
  site.sql("TRUNCATE pawl.consumers CASCADE");
  const auto lost = site.run({"check"});
  CHECK(lost.code == 1);
  CHECK_THAT(lost.out, ContainsSubstring("has no offset of it"));
}

TEST_CASE("check names the line of a statement that cannot run, with PostgreSQL's hint") {
  Site site;
  site.handler =
      "name = \"pay\"\n"
      "sql = [\n"
      "  \"SELECT 1\",\n"
      "  \"UPDATE accounts SET balanse = 1\",\n"
      "  \"UPDATE accounts SET balance = accounts.balanc\",\n"
      "]\n";
  const auto path = site.config();
  const auto outcome = site.run_bare({"check", "--config", path.string()});
  INFO(outcome.out);
  CHECK(outcome.code == 1);
  const auto line_of = [text = read_file(path)](const std::string& what) {
    const auto at = text.find(what);
    return std::to_string(1 + std::count(text.begin(), text.begin() + static_cast<long>(at), '\n'));
  };
  CHECK_THAT(outcome.out, ContainsSubstring(path.string() + ":" + line_of("balanse") +
                                            ": handler[0].sql[1] (pay): column \"balanse\""));
  CHECK_THAT(outcome.out, ContainsSubstring(path.string() + ":" + line_of("balanc\"") +
                                            ": handler[0].sql[2] (pay): column"));
  CHECK_THAT(outcome.out, ContainsSubstring("HINT: Perhaps you meant"));
}

TEST_CASE("a statement has one name, in errors of the configuration and of the database") {
  Site site;
  site.handler = "sql = [\"SELECT 1\", \"SELECT {/a\"]\n";
  const auto config = site.run({"check"});
  CHECK_THAT(config.out, ContainsSubstring("handler[0].sql[1]"));
  site.handler = "sql = [\"SELECT 1\", \"SELECT a\"]\n";
  const auto database = site.run({"check"});
  CHECK_THAT(database.out, ContainsSubstring("handler[0].sql[1]: column \"a\""));
}

TEST_CASE("a bad configuration ends every command with 2") {
  Site site;
  for (const auto* command : {"run", "check", "status", "audit", "prune"}) {
    INFO(command);
    CHECK(site.run({command, "--set", "kafka.grup=x"}).code == 2);
  }
  CHECK(site.run({"offsets", "show", "--set", "kafka.grup=x"}).code == 2);
  CHECK(site.run({"dlq", "list", "--set", "kafka.grup=x"}).code == 2);
  // What only the program and the system know of it.
  for (const auto* command : {"run", "check"}) {
    INFO(command);
    CHECK(site.run({command, "--set", "alerts.command=[\"/no/such/program\"]"}).code == 2);
  }
  site.handler = "name = \"no code has this name\"\n";
  CHECK(site.run({"run"}).code == 2);
  CHECK(site.run({"check"}).code == 2);
}

TEST_CASE("check says why it cannot talk to Kafka, not only that nobody answered") {
  Site site;
  SECTION("TLS where the broker has none") {
    site.kafka_lines = "[kafka.librdkafka]\n\"security.protocol\" = \"ssl\"\n";
    const auto outcome = site.run({"check"});
    CHECK(outcome.code == 1);
    CHECK_THAT(outcome.out, ContainsSubstring("librdkafka says: ") && ContainsSubstring("SSL"));
  }
  SECTION("a login where the broker has none") {
    site.kafka_lines =
        "[kafka.librdkafka]\n\"security.protocol\" = \"sasl_plaintext\"\n\"sasl.mechanism\" = "
        "\"PLAIN\"\n\"sasl.username\" = \"u\"\n\"sasl.password\" = \"hunter2\"\n";
    const auto outcome = site.run({"check"});
    CHECK(outcome.code == 1);
    CHECK_THAT(outcome.out, ContainsSubstring("librdkafka says: ") && ContainsSubstring("SASL") &&
                                !ContainsSubstring("hunter2"));
  }
  SECTION("nobody listens") {
    site.bootstrap = "127.0.0.1:9";
    CHECK_THAT(site.run({"check"}).out, ContainsSubstring("Connection refused"));
  }
}
