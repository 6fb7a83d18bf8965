#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "cli/status.hpp"
#include "console/kafka_look.hpp"
#include "ops/catching_up.hpp"
#include "pawl/options.hpp"
#include "postgres/session.hpp"

namespace pawl::cli {

/// Looks again and again over the same two connections, which it makes anew when they broke.
class StatusSource {
 public:
  explicit StatusSource(const Options& options) : options_(options) {}

  /// A Kafka that is away is waited for at each look, or, by who has other things to tell, asked
  /// again every ten seconds; its problem stands in the answers between.
  enum class AwayKafka { kAsk, kSpare };

  /// Throws nothing that a server could cause: that is a problem in the answer.
  [[nodiscard]] Status look(AwayKafka away = AwayKafka::kAsk);
  /// Adds which message has waited the longest to what look() returned: about ten requests to
  /// Kafka. Throws nothing; it remains unknown if Kafka does not respond.
  void find_oldest(Status& status) const;

 private:
  struct Counted {
    std::int64_t processed = 0;
    std::int64_t base_offset = 0;
  };

  void ask_postgres(Status& status);
  void ask_kafka(Status& status);
  void find_pending_halts(Status& status, const KafkaLook& look) const;
  void find_rates(Status& status);
  void find_etas(Status& status);

  const Options& options_;
  std::unique_ptr<postgres::Session> session_;
  std::unique_ptr<kafka::Client> client_;
  std::map<TopicPartition, Counted> counted_;  ///< at the last look
  std::int64_t counted_at_ms_ = 0;
  ops::Places places_;  ///< at the last look
  std::int64_t placed_at_ms_ = 0;
  std::string kafka_problem_;                                ///< at the last look
  std::chrono::steady_clock::time_point ask_kafka_again_{};  ///< should it be spared
};

}  // namespace pawl::cli
