#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "dead_letters/relay_record.hpp"
#include "dead_letters/store/feed.hpp"
#include "engine/background_task.hpp"
#include "engine/backoff.hpp"
#include "engine/bell.hpp"
#include "engine/context.hpp"
#include "kafka/producer.hpp"
#include "postgres/session.hpp"

namespace pawl::engine {

/// Feeds dead_letters.topic from the table while a consumer runs. Letters are sent once they are
/// committed, and marked once Kafka has confirmed them, so each is stored at least once.
class DeadLetterRelay final : public BackgroundTask {
 public:
  using Clock = std::chrono::steady_clock;

  explicit DeadLetterRelay(Context& context);
  ~DeadLetterRelay() override;

  void stop(Clock::time_point deadline, bool finish) override { bell_.stop(deadline, finish); }

 private:
  /// A letter in the producer's hands.
  struct Sending {
    const ledger::DeadLetter* letter = nullptr;
    LetterSize size = LetterSize::kWhole;
  };
  using Batch = std::map<std::int64_t, Sending>;

  void run();
  bool try_pass();
  bool pass();
  bool connect();
  bool ready();
  bool feed();
  bool send(const std::vector<ledger::DeadLetter>& letters);
  void send(const Sending& sending);
  bool settle(Batch& batch, const kafka::Delivery& delivery);
  bool keep_lease();
  bool still_ours();
  void mark();
  [[nodiscard]] ledger::DeadLetterFeed::Ids left_out();
  void warn(const std::string& text, std::string_view sqlstate = {}) const;
  void tell(const postgres::Error& error) const;
  void emit(Step step, const std::string& text) const;

  Context& context_;
  Bell& bell_;
  const std::string& topic_;
  ledger::DeadLetterFeed feed_;
  std::unique_ptr<postgres::Session> session_;
  std::unique_ptr<kafka::Producer> producer_;  ///< null: the topic is to be looked at first
  Clock::time_point lease_due_;
  ledger::DeadLetterFeed::Ids confirmed_;              ///< by Kafka, and not marked yet
  std::map<std::int64_t, Clock::time_point> refused_;  ///< letters to leave alone until then
  std::thread thread_;
};

}  // namespace pawl::engine
