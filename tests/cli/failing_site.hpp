#pragma once

#include <catch2/catch_test_macros.hpp>
#include <string>

#include "site.hpp"

namespace pawl::testing {

/// A site whose account "stranger" cannot be paid until mend() is called.
struct Failing : Site {
  explicit Failing(const std::string& policy, int partitions = 1) : Site(partitions) {
    more = "[failures]\nmax_attempts = 1\ncircuit_breaker = 0\non_failure = \"" + policy + "\"\n";
    sql("ALTER TABLE ledger ADD CONSTRAINT known CHECK (account <> 'stranger')");
  }
  void drain() {
    const auto done = run({"run", "--drain"});
    INFO(done.err);
    REQUIRE(done.code == 0);
  }
  void mend() const { sql("ALTER TABLE ledger DROP CONSTRAINT known"); }
  void pay_strangers(int count, const std::string& prefix = "s") {
    KafkaProducer producer(bootstrap);
    for (int i = 0; i < count; ++i) {
      producer.send(topic, {.key = "stranger",
                            .value = R"({"account": "stranger", "amount": 1})",
                            .headers = {{"event-id", prefix + std::to_string(i)}},
                            .partition = 0});
    }
    producer.flush();
  }
  void note_order() const {
    sql("CREATE TABLE ordered (position bigserial, event_id text)");
    sql("CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN INSERT INTO ordered "
        "(event_id) VALUES (NEW.event_id); RETURN NEW; END$$");
    sql("CREATE TRIGGER note AFTER INSERT ON ledger FOR EACH ROW EXECUTE FUNCTION note()");
  }
  /// How many of pay_strangers() were applied in another order than the log's: in that order each
  /// position holds the event of its number.
  [[nodiscard]] std::string out_of_order() const {
    return sql(
        "SELECT count(*) FROM (SELECT event_id, row_number() OVER (ORDER BY position) - 1 AS n "
        "FROM ordered) o WHERE event_id <> 's' || n");
  }
  [[nodiscard]] std::string ids() const {
    return sql(
        "SELECT string_agg(dead_letter_id::text, ' ' ORDER BY dead_letter_id) FROM "
        "pawl.dead_letters");
  }
  [[nodiscard]] std::string count(const std::string& where) const {
    return sql("SELECT count(*) FROM pawl.dead_letters WHERE " + where);
  }
};

}  // namespace pawl::testing
