#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "ledger/types.hpp"
#include "pawl/message.hpp"
#include "postgres/session.hpp"
#include "postgres/statement.hpp"

namespace pawl::ledger {

/// An unresolved dead letter that is tried again by itself.
struct DueLetter {
  std::int64_t id = 0;
  TopicPartition partition;
  std::int64_t offset = -1;
  std::string handler;
  /// How often it was tried by itself; -1: not at all, also not from Kafka, where its record key
  /// was parked.
  std::int32_t retries = 0;
  std::optional<std::string> record_key_hash = {};
  /// A process ended while it was tried, or may have: until that is told apart nothing else runs
  /// meanwhile.
  bool alone = false;
  /// It has ended, and that try was not alone, so `retries` leaves it out.
  bool uncounted = false;

  /// As they are stored.
  [[nodiscard]] std::int32_t stored_retries() const { return retries + (uncounted ? 1 : 0); }
};

/// Why a letter that was taken failed once more.
struct RetryFailure {
  std::string reason;  ///< dead_reason
  std::string sqlstate;
  std::string statement;  ///< of the handler: "sql[0]"; empty: it was none, or is unknown
  std::string error;
  std::string detail;  ///< may quote row values
  bool last = false;   ///< from now on it waits for an operator
};

/// The times in pawl.dead_letters (migrations/0004_dead_letters.sql), by the server's clock. Who
/// changes a letter names the number of its tries that it knows, so of two only one does. All throw
/// postgres::Error or postgres::InDoubt.
class DueLetters {
 public:
  DueLetters(const std::string& schema, ConsumerId consumer);

  /// Whose time has come and whose partition runs, up to `most` of each partition.
  [[nodiscard]] std::vector<DueLetter> due(postgres::Session& session, std::int64_t most) const;

  /// Whether any letter has a time, or waits for its turn.
  [[nodiscard]] bool any(postgres::Session& session) const;

  /// Counts a try and stores when the next one is due, before the handler runs. False: it is not to
  /// be tried now, by us.
  bool take(postgres::Session& session, const DueLetter& letter,
            std::chrono::milliseconds next) const;

  // Of a letter that was taken; `letter` as it was before:

  /// Takes the try back: it says nothing about the letter. One that was to be alone still is.
  void give_back(postgres::Session& session, const DueLetter& letter,
                 std::chrono::milliseconds next) const;
  void failed(postgres::Session& session, const DueLetter& letter,
              const RetryFailure& failure) const;

  /// As failed() and the last, of a letter that was not taken.
  void give_up(postgres::Session& session, const DueLetter& letter, const std::string& reason,
               const std::string& why) const;

 private:
  void store_failure(postgres::Session& session, const DueLetter& letter, std::int64_t retries,
                     const RetryFailure& failure) const;

  ConsumerId consumer_;
  postgres::Statement due_;
  postgres::Statement any_;
  postgres::Statement take_;
  postgres::Statement give_back_;
  postgres::Statement failed_;
};

}  // namespace pawl::ledger
