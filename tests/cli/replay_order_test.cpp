// The order in which dead letters of a record key are replayed, also after partitions were added.
#include <fmt/format.h>

#include "failing_site.hpp"
#include "prelude.hpp"

namespace {

constexpr int kKeys = 40;

/// Messages first..last of each key, as a producer's partitioner spreads them; message 3 of every
/// second key is not applied until the site is mended.
void produce(const Failing& site, int first, int last) {
  KafkaProducer producer(site.bootstrap, "", {{"partitioner", "murmur2_random"}});
  for (int number = first; number <= last; ++number) {
    for (int key = 0; key < kKeys; ++key) {
      const auto* const account = number == 3 && key % 2 == 0 ? "stranger" : "a";
      producer.send(site.topic, {.key = fmt::format("customer-{}", key),
                                 .value = fmt::format(R"({{"account":"{}","amount":1}})", account),
                                 .headers = {{"event-id", fmt::format("{}:{}", key, number)}}});
    }
  }
  producer.flush();
}

/// A site whose topic had three partitions for messages 0 to 9 of each key, and four for 10 to 19.
struct Grown : Failing {
  Grown() : Failing("park", 3) {
    note_order();
    produce(*this, 0, 9);
    drain();
    KafkaBroker::shared().add_partitions(topic, 4);
    produce(*this, 10, 19);
    drain();
  }
  /// Keys with unresolved dead letters whose later ones are in a lower partition.
  [[nodiscard]] std::string moved_down() const {
    return sql(
        "SELECT count(*) FROM (SELECT record_key FROM pawl.dead_letters GROUP BY 1 HAVING "
        "(array_agg(partition ORDER BY dead_letter_id))[1] > min(partition)) k");
  }
  [[nodiscard]] std::string keys_out_of_order() const {
    return sql(
        "SELECT count(DISTINCT key) FROM (SELECT split_part(event_id, ':', 1) AS key,"
        " split_part(event_id, ':', 2)::int AS number, row_number() OVER (PARTITION BY "
        "split_part(event_id, ':', 1) ORDER BY position) - 1 AS place FROM ordered) o WHERE number "
        "<> place");
  }
};

}  // namespace

TEST_CASE("a replay keeps the order of keys that moved to a lower partition") {
  Grown site;
  REQUIRE(std::stoi(site.moved_down()) > 0);
  REQUIRE(site.count("status = 'dead'") == std::to_string(kKeys / 2));
  // What the operator is told to look at first is what failed, not what waits behind it.
  CHECK_THAT(site.run({"dlq", "parked", "--json"}).out, !ContainsSubstring("\"parked\""));

  site.mend();
  SECTION("here") {}
  SECTION("exported, and imported elsewhere") {
    const auto exported = site.run({"dlq", "export"});
    REQUIRE(exported.code == 0);
    site.sql("DELETE FROM pawl.dead_letters");
    const TempDir folder;
    const auto file = folder.path() / "dead-letters";
    write_file(file, exported.out);
    const auto imported = site.run({"dlq", "import", file.string()});
    INFO(imported.err);
    REQUIRE(imported.code == 0);
  }
  const auto replay = site.run({"dlq", "replay", "--all"});
  INFO(replay.out << replay.err);
  CHECK(replay.code == 0);
  CHECK(site.sql("SELECT count(*) FROM ordered") == std::to_string(kKeys * 20));
  CHECK(site.keys_out_of_order() == "0");
}
