#pragma once

#include <catch2/catch_test_macros.hpp>
#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "site.hpp"

namespace pawl::testing {

/// A site whose messages and keys have the age that a test wants. Kept for an hour in these tests,
/// so that Kafka's own retention leaves old messages alone.
struct Aging : Site {
  using Site::Site;

  void pay_before(std::chrono::minutes age, int partition, const std::string& event_id,
                  const std::string& amount = "1", bool with_id = true) const {
    const auto at = std::chrono::system_clock::now() - age;
    KafkaProducer producer(bootstrap);
    Record record{
        .key = "a",
        .value = R"({"account": "a", "amount": )" + amount + "}",
        .partition = partition,
        .timestamp_ms =
            std::chrono::duration_cast<std::chrono::milliseconds>(at.time_since_epoch()).count()};
    if (with_id)
      record.headers = {{"event-id", event_id}};
    producer.send(topic, record);
    producer.flush();
  }
  void pay_many_before(std::chrono::minutes age, int partition, const std::string& prefix,
                       int count) const {
    for (int i = 0; i < count; ++i)
      pay_before(age, partition, prefix + std::to_string(i));
  }
  void drain(const std::vector<std::string>& more_arguments = {}) {
    std::vector<std::string> arguments{"run", "--drain"};
    arguments.insert(arguments.end(), more_arguments.begin(), more_arguments.end());
    const auto done = run(arguments);
    INFO(done.err);
    REQUIRE(done.code == 0);
  }
  /// As if what is stored now had been processed so long ago.
  void age_keys(const std::string& age, const std::string& where = "true") const {
    sql("UPDATE pawl.idempotency_keys SET created_at = created_at - interval '" + age + "' WHERE " +
        where);
  }
  Outcome prune(const std::vector<std::string>& more_arguments = {}) {
    std::vector<std::string> arguments{"prune", "--older-than", "1h", "--set",
                                       "retention.load=100"};
    arguments.insert(arguments.end(), more_arguments.begin(), more_arguments.end());
    return run(arguments);
  }
  /// prune() beside the test.
  std::unique_ptr<ChildProcess> start_prune() {
    return std::make_unique<ChildProcess>(
        PAWL_PROGRAM,
        std::vector<std::string>{"prune", "--older-than", "1h", "--set", "retention.load=100",
                                 "--config", config().string()},
        ChildOptions{});
  }
  [[nodiscard]] std::string keys(const std::string& where = "true") const {
    return sql("SELECT count(*) FROM pawl.idempotency_keys WHERE " + where);
  }
  [[nodiscard]] std::string payments() const { return sql("SELECT count(*) FROM ledger"); }
};

/// The command that sets partition 0 to an offset.
inline std::vector<std::string> set_to(const Site& site, const std::string& offset) {
  return {"offsets", "set", "--topic", site.topic, "--partition", "0", "--to", offset};
}

}  // namespace pawl::testing
