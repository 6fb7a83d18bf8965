#pragma once

#include <catch2/catch_test_macros.hpp>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "site.hpp"

namespace pawl::testing {

/// A site whose books are audited. Messages of its second topic have no keys (offset by offset:
/// with a header "count" they are processed unchecked, without it they are skipped).
struct AuditedSite : Site {
  AuditedSite() : Site(2), keyless(KafkaBroker::shared().new_topic("keyless", 1)) {
    more = "[[handler]]\ntopics = [\"" + keyless +
           "\"]\nwhen = 'has({header:count})'\nkey = \"\"\nmissing_key = \"process\"\n"
           "sql = [\"UPDATE accounts SET entries = entries + 1 WHERE id = 'b'\"]\n"
           "[failures]\nmax_attempts = 1\ncircuit_breaker = 0\non_failure = \"park\"\n"
           "unmatched = \"skip\"\n";
  }

  std::string keyless;

  void send_keyless(bool counted) const {
    KafkaProducer producer(bootstrap);
    Record record{.key = "b", .value = "1", .partition = 0};
    if (counted)
      record.headers = {{"count", "yes"}};
    producer.send(keyless, record);
    producer.flush();
  }

  void drain() {
    const auto done = run({"run", "--drain"});
    INFO(done.out << done.err);
    REQUIRE(done.code == 0);
  }

  /// Every way in which a message may end. Partition 0: e0 to e9 applied, e3 again (10), "bad" dead
  /// (11) and one parked behind it (12), e10 applied (13). Partition 1: f0 to f4, f0 again (5).
  void process_all_kinds() {
    pay_many(0, "e", 10);
    pay(0, "e3", "a", "1");
    pay(0, "bad", "b", "\"no number\"");
    pay(0, "waits", "b", "1");
    pay(0, "e10", "a", "1");
    pay_many(1, "f", 5);
    pay(1, "f0", "a", "1");
    send_keyless(true);
    send_keyless(true);
    send_keyless(false);
    drain();
    REQUIRE(sql("SELECT string_agg(status, ' ' ORDER BY kafka_offset) FROM pawl.dead_letters") ==
            "dead parked");
    REQUIRE(sql("SELECT count(*) FROM pawl.skipped_messages") == "1");
  }

  nlohmann::json audit(std::vector<std::string> arguments = {}) {
    arguments.insert(arguments.begin(), {"audit", "--json"});
    const auto outcome = run(arguments);
    INFO(outcome.out << outcome.err);
    const auto report = nlohmann::json::parse(outcome.out);
    REQUIRE(outcome.code == (report.at("findings_total") == 0 ? 0 : 3));
    return report;
  }

  /// "kind partition offset key" of each finding; "-" for what is absent.
  std::vector<std::string> findings(const std::vector<std::string>& arguments = {}) {
    std::vector<std::string> list;
    const auto report = audit(arguments);
    for (const auto& finding : report.at("findings")) {
      const auto word = [&](const char* name) {
        const auto& value = finding.at(name);
        return value.is_null()     ? std::string("-")
               : value.is_string() ? value.get<std::string>()
                                   : value.dump();
      };
      list.push_back(word("kind") + ' ' + word("partition") + ' ' + word("offset") + ' ' +
                     word("key"));
    }
    return list;
  }
};

using Found = std::vector<std::string>;

}  // namespace pawl::testing
