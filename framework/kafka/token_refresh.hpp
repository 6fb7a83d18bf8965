#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <thread>

#include "kafka/handles.hpp"
#include "pawl/options.hpp"
#include "process/program.hpp"

namespace pawl::kafka {

/// Gives one client of librdkafka its OAUTHBEARER tokens: runs kafka.oauth_token_command whenever
/// librdkafka asks for one, at the start, when four fifths of a token's time are over, and ten
/// seconds after a failure. On a thread of its own, so that no thread of librdkafka's waits for the
/// program. Its owner makes it behind the client and ends it before.
class TokenRefresh {
 public:
  /// Told, on that thread, why there is no new token; librdkafka tells it as an error event as
  /// well.
  using Report = std::function<void(const std::string& problem)>;

  /// For a client that is to be made; nothing without a command.
  static void prepare(const KafkaOptions& options, rd_kafka_conf_t* conf);
  /// Null without a command.
  static std::unique_ptr<TokenRefresh> begin(const KafkaOptions& options, rd_kafka_t* client,
                                             Report report);

  TokenRefresh(const KafkaOptions& options, rd_kafka_t* client, QueueHandle requests,
               Report report);
  /// Ends a run that is in progress.
  ~TokenRefresh();
  TokenRefresh(const TokenRefresh&) = delete;
  TokenRefresh& operator=(const TokenRefresh&) = delete;

 private:
  void serve();
  void refresh();
  /// Throws std::invalid_argument.
  void set_token(const std::string& printed, std::int64_t asked_ms);

  rd_kafka_t* client_;
  QueueHandle requests_;
  const Report report_;
  process::Program program_;
  const std::string path_;
  std::atomic<bool> ending_ = false;
  std::thread thread_;
};

}  // namespace pawl::kafka
