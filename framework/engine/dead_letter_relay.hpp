#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "engine/backoff.hpp"
#include "engine/context.hpp"
#include "engine/dead_letter_bell.hpp"
#include "engine/dead_letter_record.hpp"
#include "kafka/producer.hpp"
#include "ledger/dead_letter_feed.hpp"
#include "postgres/session.hpp"

namespace pawl::engine {

/// Feeds dead_letters.topic from the table while a consumer runs, on a thread, a connection and a
/// producer of its own: nothing waits for it. Letters are sent once they are committed, and marked
/// once Kafka has confirmed them, so each is stored at least once. Owned by the supervisor; the
/// thread begins with the object.
class DeadLetterRelay {
 public:
  DeadLetterRelay(Context& context, DeadLetterBell& bell);
  /// Waits for the thread, which ends by the bell's deadline.
  ~DeadLetterRelay();
  DeadLetterRelay(const DeadLetterRelay&) = delete;
  DeadLetterRelay& operator=(const DeadLetterRelay&) = delete;

 private:
  using Clock = std::chrono::steady_clock;

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
  void warn(const std::string& text) const;
  void tell(const postgres::Error& error) const;
  void emit(Step step, const std::string& text) const;

  Context& context_;
  DeadLetterBell& bell_;
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
