#pragma once

#include <fmt/format.h>

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "payment_api.hpp"
#include "payments_world.hpp"

namespace pawl::test {

/// Until so many have come.
inline void wait_for_calls(const PaymentApi& api, std::size_t calls) {
  testing::wait_until([&] { return api.call_count() >= calls; }, std::chrono::seconds(60),
                      fmt::format("{} calls", calls));
}

/// Payments in Kafka that a leased handler charges at an API.
class ChargingWorld {
 public:
  ChargingWorld(int partitions, PaymentApi& api, testing::PostgresServer* server = nullptr)
      : world_(partitions, server), api_(api) {
    use("charge");
    world_.set("calls.lease_time=2s");
  }

  /// The [[handler]] by its name; `more` stands in it as well.
  void use(const std::string& name, const std::string& more = "") {
    world_.use_handler(fmt::format("name = \"{}\"\n{}", name, more));
  }
  [[nodiscard]] PaymentsWorld& world() { return world_; }

  using Environment = std::map<std::string, std::optional<std::string>>;
  std::unique_ptr<testing::ChildProcess> start(std::vector<std::string> arguments = {},
                                               Environment environment = {},
                                               const std::string& url = "") {
    ProgramOptions options;
    options.url = url;
    options.arguments = std::move(arguments);
    options.environment = std::move(environment);
    options.environment["PAWL_TEST_API"] = fmt::format("127.0.0.1:{}", api_.port());
    return world_.start(options);
  }
  /// Until so many processes have a partition each, so that no hand-over comes in between.
  void wait_for_owners(int processes) {
    testing::wait_until(
        [&] {
          return world_.number(
                     "SELECT count(DISTINCT owner) FROM pawl.processed_kafka_offsets"
                     " WHERE NOT released") == processes;
        },
        std::chrono::seconds(120), fmt::format("{} processes to share the partitions", processes));
  }
  /// To the end of the log.
  void drain() {
    const auto process = start({"--drain"});
    if (process->wait(std::chrono::seconds(120)).code != 0)
      throw std::runtime_error("it did not drain:\n" + process->output());
  }

  /// Keys that are stored, and of them those with the API's answer.
  [[nodiscard]] std::string stored() const {
    return world_.value(
        "SELECT concat_ws(' ', count(*), count(*) FILTER (WHERE convert_from(response, 'UTF8')"
        " LIKE '{\"charge\":\"%')) FROM pawl.idempotency_keys");
  }
  [[nodiscard]] std::string counts() const {
    return world_.value(
        "SELECT concat_ws(' ', sum(applied_count), sum(duplicate_count), sum(dead_count))"
        " FROM pawl.processed_kafka_offsets");
  }
  /// Messages that were finished with a response: where their partition was acquired anew meanwhile
  /// the new owner finds a duplicate.
  [[nodiscard]] std::int64_t finished() const {
    return world_.number(
        "SELECT sum(applied_count + duplicate_count) FROM pawl.processed_kafka_offsets");
  }
  [[nodiscard]] std::int64_t leases() const {
    return world_.number("SELECT count(*) FROM pawl.leases");
  }

 private:
  PaymentsWorld world_;
  PaymentApi& api_;
};

}  // namespace pawl::test
