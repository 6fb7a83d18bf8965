// Topics by pattern, on real Kafka: what is created later is followed, from its start.
#include <fmt/format.h>
#include <csignal>
#include <nlohmann/json.hpp>

#include "failing_site.hpp"
#include "prelude.hpp"

namespace {

/// A site whose second handler has a pattern; its topics begin with `prefix`. What its handlers
/// took stands in the table `seen`.
struct Patterns : Site {
  Patterns() : prefix(topic + "-by-") {
    sql("CREATE TABLE seen (handler text, topic text, event_id text PRIMARY KEY)");
    handler = insert("named");
    more = "[[handler]]\ntopics = ['^" + prefix + "']\n" + insert("pattern");
    kafka_lines = "topic_check_interval = \"200ms\"\n";
  }
  static std::string insert(const std::string& name) {
    return "sql = [\"INSERT INTO seen SELECT '" + name + "', {topic}, {header:event-id}\"]\n";
  }
  std::string create(const std::string& name, int partitions = 1) const {
    KafkaBroker::shared().create_topic(prefix + name, partitions);
    return prefix + name;
  }
  void send(const std::string& to, const std::string& tag, int count = 3) const {
    KafkaProducer producer(bootstrap);
    for (int i = 0; i < count; ++i) {
      Record record;
      record.value = "{}";
      record.headers = {{"event-id", fmt::format("{} {}", tag, i)}};
      producer.send(to, record);
    }
    producer.flush();
  }
  /// By whom what was sent under the tag was taken, and how many: "pattern 3".
  [[nodiscard]] std::string taken(const std::string& tag) const {
    return sql(
        "SELECT coalesce(string_agg(handler || ' ' || n, ', ' ORDER BY handler), 'none')"
        " FROM (SELECT handler, count(*) AS n FROM seen WHERE event_id LIKE '" +
        tag + " %' GROUP BY handler) s");
  }
  void wait_for(const std::string& tag, const std::string& expected) const {
    wait_until([&] { return taken(tag) == expected; }, kDeadline,
               "what was sent as " + tag + " to be taken: " + expected);
  }
  static void end(ChildProcess& process) {
    process.kill(SIGTERM);
    const auto status = process.wait(kDeadline);
    INFO(process.output());
    REQUIRE(status.success());
  }

  std::string prefix;
};

}  // namespace

TEST_CASE("a pattern's topics are consumed, one that is created meanwhile too, and a name wins") {
  const auto protocol = GENERATE("classic"s, "consumer"s);
  CAPTURE(protocol);
  Patterns site;
  site.kafka_lines += "group_protocol = \"" + protocol + "\"\n";
  const auto letters = site.create("letters");
  const auto published = site.create("published");
  // What is named belongs to its handler alone; what this consumer writes to, no pattern means.
  site.topic = site.create("named");
  site.more += "[dead_letters]\ntopic = \"" + letters + "\"\n";
  site.handler =
      "sql = [\"INSERT INTO seen SELECT 'named', {topic}, {header:event-id}\","
      " \"SELECT pawl.publish('" +
      published + "', 'k', 'v') WHERE false\"]\n";
  const auto one = site.create("one", 2);
  const auto two = site.create("two");
  const std::vector<std::pair<std::string, std::string>> sent{{one, "one"},
                                                              {two, "two"},
                                                              {site.topic, "by name"},
                                                              {letters, "letters"},
                                                              {published, "published"}};
  for (const auto& [topic, tag] : sent)
    site.send(topic, tag);
  const auto process = site.start();
  site.wait_for("one", "pattern 3");
  site.wait_for("two", "pattern 3");
  site.wait_for("by name", "named 3");

  const auto three = site.create("three", 3);
  site.send(three, "three", 10);
  site.wait_for("three", "pattern 10");
  site.send(one, "one again");
  site.wait_for("one again", "pattern 3");
  CHECK(site.taken("letters") == "none");
  CHECK(site.taken("published") == "none");
  CHECK(site.sql("SELECT count(*) FROM pawl.consumer_topics") == "4");
  Patterns::end(*process);

  // As it began.
  site.send(three, "three again");
  const auto again = site.run({"run", "--drain"});
  INFO(again.err);
  CHECK(again.code == 0);
  CHECK(site.taken("three again") == "pattern 3");
}

TEST_CASE("what comes after a pattern was met begins at its start, whatever kafka.start says") {
  Patterns site;
  site.kafka_lines += "start = \"latest\"\n";
  const auto before = site.create("before");
  site.send(before, "old");
  const auto process = site.start();
  site.wait_for_sql("SELECT count(*) FROM pawl.processed_kafka_offsets WHERE topic = '" + before +
                        "' AND owner_epoch > 0",
                    "1");
  // It stands at the end of the log that it met.
  site.send(before, "new");
  site.wait_for("new", "pattern 3");
  CHECK(site.taken("old") == "none");

  const auto meanwhile = site.create("meanwhile");
  site.send(meanwhile, "meanwhile", 20);
  site.wait_for("meanwhile", "pattern 20");
  Patterns::end(*process);

  const auto absent = site.create("absent");
  site.send(absent, "absent", 20);
  const auto check = site.run({"check"});
  INFO(check.out << check.err);
  CHECK_THAT(check.out, ContainsSubstring(absent + "[0] starts at offset 0: the log's start"));
  const auto again = site.run({"run", "--drain"});
  INFO(again.err);
  CHECK(again.code == 0);
  CHECK(site.taken("absent") == "pattern 20");
  CHECK(site.taken("old") == "none");
}

TEST_CASE("a pattern that means nothing yet waits for its first topic; a drain has nothing to do") {
  Patterns site;
  // Nothing but the pattern.
  site.topic = "^" + site.prefix + "x";
  site.more = "";
  const auto drained = site.run({"run", "--drain"});
  INFO(drained.err);
  CHECK(drained.code == 0);
  const auto process = site.start();
  process->wait_for_output("no topic exists yet for ^", kDeadline);
  // Nobody is needed for that.
  const auto status = site.run({"status", "--exit-code"});
  INFO(status.out << status.err);
  CHECK(status.code == 0);
  CHECK_THAT(status.out, ContainsSubstring("no topic matches its patterns yet"));
  const auto first = site.create("x-first");
  site.send(first, "first");
  site.wait_for("first", "named 3");
  Patterns::end(*process);
}

TEST_CASE("a topic that two patterns mean is refused and told, and the others go on") {
  Patterns site;
  site.more += "[[handler]]\ntopics = ['^" + site.prefix + "b']\n" + Patterns::insert("second");
  const auto alone = site.create("alone");
  const auto both = site.create("both");
  site.send(alone, "alone");
  site.send(both, "both");
  const auto process = site.start();
  process->wait_for_output("topic " + both + " matches more than one pattern", kDeadline);
  site.wait_for("alone", "pattern 3");
  CHECK(site.taken("both") == "none");
  const auto check = site.run({"check"});
  CHECK(check.code != 0);
  CHECK_THAT(check.out + check.err, ContainsSubstring("topic " + both + " matches more than"));
  const auto status = nlohmann::json::parse(site.run({"status", "--json"}).out);
  CHECK_THAT(status["ambiguous_topics"].dump(), ContainsSubstring(both));
  CHECK(status["access_denied_topics"].empty());
  CHECK_THAT(site.run({"status"}).out, ContainsSubstring("matches more than one pattern") &&
                                           !ContainsSubstring("Grant this user"));
  Patterns::end(*process);

  // Named, it is its handler's, from its start.
  site.more += "[[handler]]\ntopics = ['" + both + "']\n" + Patterns::insert("third");
  const auto named = site.run({"run", "--drain"});
  INFO(named.err);
  CHECK(named.code == 0);
  CHECK(site.taken("both") == "third 3");
}

TEST_CASE("of a pattern's topics one may go, and one that comes back is told to be another") {
  Patterns site;
  const auto stays = site.create("stays");
  const auto goes = site.create("goes");
  site.send(stays, "stays");
  site.send(goes, "goes");
  const auto process = site.start();
  site.wait_for("stays", "pattern 3");
  site.wait_for("goes", "pattern 3");
  KafkaBroker::shared().delete_topic(goes);
  site.send(stays, "stays on");
  site.wait_for("stays on", "pattern 3");
  const auto gone = site.run({"status", "--exit-code"});
  INFO(gone.out << gone.err);
  CHECK_THAT(gone.out, ContainsSubstring("Topic " + goes + " no longer exists in Kafka."));
  site.create("goes");
  site.send(goes, "came back");
  site.wait_for_sql("SELECT state FROM pawl.processed_kafka_offsets WHERE topic = '" + goes + "'",
                    "halted");
  CHECK(site.sql("SELECT halt_code FROM pawl.processed_kafka_offsets WHERE topic = '" + goes +
                 "'") == "topic_recreated");
  site.send(stays, "stays further");
  site.wait_for("stays further", "pattern 3");
  const auto set = site.run({"offsets", "set", "--topic", goes, "--all", "--to", "earliest"});
  INFO(set.out << set.err);
  CHECK(set.code == 0);
  site.wait_for("came back", "pattern 3");
  Patterns::end(*process);
}

TEST_CASE("every command works with patterns") {
  Patterns site;
  site.more = "[[handler]]\ntopics = ['^" + site.prefix +
              "']\nsql = [\"INSERT INTO seen VALUES ('pattern', {topic}, {header:event-id})\"]\n"
              "on_failure = \"dead-letter\"\nretention = \"5d\"\n[failures]\nmax_attempts = 1\n";
  const auto topic = site.create("topic");
  site.send(topic, "event");
  site.sql("INSERT INTO seen VALUES ('in the way', '', 'event 1')");

  const auto check = site.run({"check"});
  INFO(check.out << check.err);
  CHECK(check.code == 0);
  CHECK_THAT(check.out, ContainsSubstring("^" + site.prefix + " matches 1 topic now"));
  const auto tried = site.run({"try", "--topic", topic, "--partition", "0", "--offset", "0"});
  INFO(tried.out << tried.err);
  CHECK(tried.code == 0);
  CHECK_THAT(tried.out, ContainsSubstring("rolled back"));
  const auto set = site.run({"offsets", "set", "--topic", topic, "--all", "--to", "earliest"});
  INFO(set.out << set.err);
  CHECK(set.code == 0);
  const auto run = site.run({"run", "--drain"});
  INFO(run.err);
  REQUIRE(run.code == 0);
  CHECK(site.taken("event") == "in the way 1, pattern 2");
  CHECK(site.sql("SELECT retention_ms FROM pawl.scope_sources JOIN pawl.consumer_topics USING "
                 "(source_id) WHERE topic = '" +
                 topic + "'") == std::to_string(5LL * 24 * 3600 * 1000));

  const auto status = nlohmann::json::parse(site.run({"status", "--json"}).out);
  CHECK_THAT(status.dump(), ContainsSubstring(topic) && !ContainsSubstring("^"));
  const auto shown = site.run({"offsets", "show"});
  CHECK(shown.code == 0);
  CHECK_THAT(shown.out, ContainsSubstring(topic));
  site.sql("DELETE FROM seen WHERE handler = 'in the way'");
  const auto replayed = site.run({"dlq", "replay", "--all"});
  INFO(replayed.out << replayed.err);
  CHECK(replayed.code == 0);
  CHECK(site.taken("event") == "pattern 3");
  const auto pruned = site.run({"prune", "--dry-run"});
  INFO(pruned.out << pruned.err);
  CHECK(pruned.code == 0);
  const auto audit = site.run({"audit"});
  INFO(audit.out << audit.err);
  CHECK(audit.code == 0);
  CHECK_THAT(audit.out, ContainsSubstring(topic));
  const auto config = site.run({"config", "show"});
  CHECK(config.code == 0);
}
