#pragma once

#include <librdkafka/rdkafka.h>

#include <chrono>
#include <mutex>
#include <string>
#include <utility>

namespace pawl::kafka {

/// Names the bootstrap servers to a client again that finds no broker. A broker that its controller
/// has fenced (it was stopped for seconds, its disk hung) tells clients of no broker at all;
/// librdkafka (2.14.2) then forgets all that it had, and once none is left has nobody to ask, for
/// ever: its own "metadata.recovery.strategy" begins with a request to a broker. Thread-safe.
class Bootstrap {
 public:
  explicit Bootstrap(std::string servers) : servers_(std::move(servers)) {}

  /// At most every ten seconds: librdkafka keeps each list that it is given. Brokers that it has it
  /// does not add again.
  void name_again(rd_kafka_t* client);

  [[nodiscard]] const std::string& servers() const { return servers_; }

 private:
  const std::string servers_;
  std::mutex mutex_;
  std::chrono::steady_clock::time_point next_{};  // guarded by mutex_
};

}  // namespace pawl::kafka
