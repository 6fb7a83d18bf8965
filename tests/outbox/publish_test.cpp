// pawl.publish() as SQL: what it stores, what it refuses, and who may call it.
#include <fmt/format.h>

#include <pqxx/pqxx>

#include "prelude.hpp"

namespace {

class Site {
 public:
  Site() : url_(PostgresServer::shared().create_database("publish")), connection_(url_) {}

  pqxx::result run(const std::string& sql) {
    pqxx::nontransaction tx(connection_);
    return tx.exec(sql);
  }
  std::string value(const std::string& sql) { return run(sql).one_field().as<std::string>("NULL"); }

  /// The SQLSTATE and the message with which it is refused.
  std::string refusal(const std::string& sql) {
    try {
      run(sql);
    } catch (const pqxx::sql_error& error) {
      return error.sqlstate() + " " + error.what();
    }
    return "taken";
  }

  [[nodiscard]] const std::string& url() const { return url_; }

 private:
  std::string url_;
  pqxx::connection connection_;
};

}  // namespace

TEST_CASE("pawl.publish stores what is given: bytes, nulls, headers in their order") {
  Site site;
  const auto id = site.value(R"(SELECT pawl.publish('t', '\x00ff'::bytea, '\x01'::bytea))");
  CHECK(site.value("SELECT event_id FROM pawl.outbox") == id);
  CHECK(site.value("SELECT record_key::text || record_value::text FROM pawl.outbox") ==
        R"(\x00ff\x01)");

  CHECK(site.value("SELECT pawl.publish('t', NULL, NULL, event_id => 'mine')") == "mine");
  CHECK(site.value("SELECT record_key IS NULL AND record_value IS NULL AND headers IS NULL"
                   "  FROM pawl.outbox WHERE event_id = 'mine'") == "t");

  site.run(R"(SELECT pawl.publish('t', 'k', 'ü', '{"b": "1", "a": null}', 'object'))");
  CHECK(site.value("SELECT convert_from(record_value, 'UTF8') FROM pawl.outbox"
                   " WHERE event_id = 'object'") == "ü");
  CHECK(site.value("SELECT headers FROM pawl.outbox WHERE event_id = 'object'") ==
        R"([{"name": "a", "value": null}, {"name": "b", "value": "MQ=="}])");

  site.run(R"(SELECT pawl.publish('t', 'k', 'v', '[{"name": "x", "base64": "AP\n8="},
                {"name": "a", "value": ""}, {"name": "x", "value": null}, {"name": "y"}]', 'array'))");
  CHECK(site.value("SELECT headers FROM pawl.outbox WHERE event_id = 'array'") ==
        R"([{"name": "x", "value": "AP8="}, {"name": "a", "value": ""}, )"
        R"({"name": "x", "value": null}, {"name": "y", "value": null}])");
}

TEST_CASE("what pawl.publish cannot publish it refuses at once") {
  Site site;
  const auto [call, why] = GENERATE(table<std::string, std::string>({
      {"NULL, 'k', 'v'", "NULL is not a valid name of a Kafka topic"},
      {"'', 'k', 'v'", "is not a valid name of a Kafka topic"},
      {"'a b', 'k', 'v'", "is not a valid name of a Kafka topic"},
      {"'..', 'k', 'v'", "is not a valid name of a Kafka topic"},
      {"repeat('a', 250), 'k', 'v'", "is not a valid name of a Kafka topic"},
      {"'__consumer_offsets', 'k', 'v'", "topic __consumer_offsets is internal to Kafka"},
      {"'__transaction_state', NULL, 'v'", "topic __transaction_state is internal to Kafka"},
      {"'t', 'k', repeat('v', 1000001)", "1000002 bytes; the limit is 1000000"},
      {R"('t', 'k', 'v', '{"a": 1}')", "header a is not a text"},
      {R"('t', 'k', 'v', '"a"')", "neither an object nor an array"},
      {R"('t', 'k', 'v', '[{"name": "a"}, {"value": "b"}]')", "header number 2 is not"},
      {R"('t', 'k', 'v', '[{"name": "a", "value": "b", "base64": "AA=="}]')", "header number 1"},
      {R"('t', 'k', 'v', '[{"name": "a", "base64": "%"}]')", "base64"},
      {R"('t', 'k', 'v', '{"pawl-outbox-id": "1"}')", "reserved for pawl"},
      {"'t', 'k', 'v', NULL, ''", "an event_id has 1 to 1000 bytes"},
  }));
  CAPTURE(call);
  const auto refusal = site.refusal(fmt::format("SELECT pawl.publish({})", call));
  CHECK_THAT(refusal, StartsWith("22"));
  CHECK_THAT(refusal, ContainsSubstring(why));
  CHECK(site.value("SELECT count(*) FROM pawl.outbox") == "0");
}

TEST_CASE("all messages of one topic and key are in one shard, whatever the type of the key") {
  Site site;
  site.run("SELECT pawl.publish('t', 'key ' || n % 50, 'v') FROM generate_series(1, 400) n");
  site.run(
      "SELECT pawl.publish('t', convert_to('key ' || n % 50, 'UTF8'), 'v'::bytea)"
      "  FROM generate_series(1, 400) n");
  CHECK(
      site.value("SELECT max(shards) FROM (SELECT count(DISTINCT shard) AS shards FROM pawl.outbox"
                 " GROUP BY record_key) k") == "1");
  CHECK(site.value("SELECT count(DISTINCT shard) FROM pawl.outbox") == "4");
}

// Fails where whoever gives a lane back leaves its transactional id to a new producer: one that an
// owner before it could not shut out may still commit.
TEST_CASE("a lane's transactional id is free only behind an owner that was alone") {
  Site site;
  site.run(
      "UPDATE pawl.outbox_shards SET owner = 'another', lease_until = clock_timestamp() + '1 hour'"
      " WHERE shard > 0");
  const auto free_behind = [&](const std::string& alone) {
    site.run("SELECT pawl.release_outbox_shard(t.shard, t.epoch, " + alone +
             ") FROM pawl.acquire_outbox_shard('this', 10000, 'cluster') t");
    return site.value(
        "SELECT coalesce(released_epoch = epoch, false) FROM pawl.outbox_shards WHERE shard = 0");
  };
  CHECK(free_behind("false") == "f");
  CHECK(free_behind("true") == "t");
  CHECK(free_behind("false") == "f");
  CHECK(free_behind("false") == "f");
  CHECK(free_behind("true") == "t");
}

// Fails where a message that is found again from the top of its lane waits behind a later one of
// its key that Kafka has refused since.
TEST_CASE("what waits for a message that is set apart stands behind it") {
  Site site;
  site.run("SELECT pawl.publish('t', 'k', n::text) FROM generate_series(1, 3) n");
  site.run("SELECT pawl.acquire_outbox_shard('this', 10000, 'cluster') FROM pawl.outbox_shards");
  site.run(
      "SELECT pawl.fail_outbox_rows(l.shard, l.epoch, ARRAY(SELECT outbox_id FROM pawl.outbox"
      " WHERE record_value = '2'), 'failed', 'why') FROM pawl.outbox_shards l");
  CHECK(site.value("SELECT string_agg(convert_from(n.record_value, 'UTF8') || ' ' || n.held, ', '"
                   " ORDER BY n.outbox_id) FROM pawl.outbox_shards l,"
                   " pawl.next_outbox_rows(l.shard, 0, pg_current_snapshot(), 100, 1000000) n"
                   " WHERE n.outbox_id IS NOT NULL") == "1 false, 3 true");
}

TEST_CASE("a role that may publish may do nothing else") {
  Site site;
  site.run("DROP ROLE IF EXISTS publisher_only");
  site.run("CREATE ROLE publisher_only LOGIN");
  CHECK_THAT(
      [&] {
        site.run("SET ROLE publisher_only");
        auto text = site.refusal("SELECT pawl.publish('t', 'k', 'v')");
        site.run("RESET ROLE");
        return text;
      }(),
      ContainsSubstring("permission denied"));
  const auto grants = run_script(scripts_folder() / "migrate",
                                 {"grants", "--publisher", "--role", "publisher_only"});
  site.run(grants);
  site.run("SET ROLE publisher_only");
  CHECK(site.refusal("SELECT pawl.publish('t', 'k', 'v')") == "taken");
  CHECK(site.refusal("SELECT pawl.publish('t', 'k'::bytea, 'v'::bytea)") == "taken");
  CHECK_THAT(site.refusal("SELECT * FROM pawl.outbox"), ContainsSubstring("permission denied"));
  CHECK_THAT(site.refusal("DELETE FROM pawl.outbox"), ContainsSubstring("permission denied"));
  CHECK_THAT(site.refusal("SELECT nextval('pawl.outbox_outbox_id_seq')"),
             ContainsSubstring("permission denied"));
  CHECK_THAT(site.refusal("SELECT count(*) FROM pawl.processed_kafka_offsets"),
             ContainsSubstring("permission denied"));
  site.run("RESET ROLE");
  CHECK(site.value("SELECT count(*) FROM pawl.outbox") == "2");
  site.run("DROP OWNED BY publisher_only");
  site.run("DROP ROLE publisher_only");
}
