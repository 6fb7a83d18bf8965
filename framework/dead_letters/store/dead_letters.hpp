#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "ledger/types.hpp"
#include "pawl/message.hpp"
#include "pawl/options.hpp"
#include "postgres/array_elements.hpp"
#include "postgres/request.hpp"
#include "postgres/statement.hpp"

namespace pawl::ledger {

/// Characters that are stored of an error's text, and of its detail.
inline constexpr std::size_t kLongestError = 8192;

/// Why a message was set aside: a word for filters and counts.
namespace dead_reason {
inline constexpr const char* kError = "error";              ///< the attempts are used up
inline constexpr const char* kPermanent = "permanent";      ///< the handler said that none can help
inline constexpr const char* kUndecodable = "undecodable";  ///< the value cannot be read
inline constexpr const char* kMissingKey = "missing-key";
inline constexpr const char* kConflict = "conflict";  ///< a known key with another payload
inline constexpr const char* kUnmatched = "unmatched";
inline constexpr const char* kCrash = "crash";    ///< it ends the processes that run it
inline constexpr const char* kParked = "parked";  ///< waits behind another of its record key
inline constexpr const char* kAll[] = {kError,    kPermanent, kUndecodable, kMissingKey,
                                       kConflict, kUnmatched, kCrash,       kParked};
}  // namespace dead_reason

/// The error of a message that is parked without an attempt.
inline constexpr const char* kParkedError = "waits for an earlier message of its record key";

/// What is known of a message's failure when it is set aside.
struct Burial {
  bool parked = false;          ///< itself not tried: it waits behind another
  bool parks_its_key = false;   ///< later messages of its record key must wait behind it
  std::string reason;           ///< dead_reason
  std::string handler;          ///< its label
  std::string idempotency_key;  ///< empty: none was derived
  std::string sqlstate;         ///< empty: not the database's failure
  std::string statement;        ///< of the handler: "sql[0]"; empty: it was none, or is unknown
  std::string error;
  std::string error_detail;  ///< may quote row values; not for logs
  std::uint32_t attempts = 0;
  std::optional<std::int32_t> leader_epoch;
  /// It is tried again by itself, so long after now; a parked one once it is its turn.
  std::optional<std::chrono::milliseconds> retry_after = {};
};

/// pawl.dead_letters and pawl.parked_keys: messages that were set aside whole, in the transaction
/// that moves the offset past them.
class DeadLetters {
 public:
  DeadLetters(const std::string& schema, ConsumerId consumer, const DeadLetterOptions& options);

  /// Bytes that PostgreSQL's text cannot hold are made printable in the texts, never in the
  /// message. Answers (dead_letter_id).
  [[nodiscard]] postgres::Request bury(const Message& message, const Burial& burial) const;
  /// Behind bury(), of a burial that has retry_after.
  [[nodiscard]] postgres::Request schedule(const Message& message, const Burial& burial) const;

  /// The message's, which has one.
  [[nodiscard]] RecordKey record_key(const Message& message) const;

  /// Makes later messages of the record key wait. Its row stays locked until the transaction ends.
  [[nodiscard]] postgres::Request park_key(const Message& message) const;
  /// Answers (parked, transaction id). Must run in the transaction that claims or parks.
  [[nodiscard]] postgres::Request ask_parked(const Message& message) const;
  /// Asks which of many record keys is the first that may be parked: its letters may be resolved
  /// meanwhile, as ask_parked() tells. `record_keys`: bytea in hexadecimal form, or null.
  void ask_first_parked(postgres::Request& request, const std::string& topic,
                        const postgres::ArrayElements& record_keys) const;
  /// Its place among them, from 0; nullopt: none is.
  [[nodiscard]] static std::optional<std::size_t> first_parked(const PGresult* rows);
  [[nodiscard]] static bool parked(const PGresult* rows);
  [[nodiscard]] static std::string transaction(const PGresult* rows);

 private:
  ConsumerId consumer_;
  DeadLetterOptions options_;
  postgres::Statement bury_;
  postgres::Statement schedule_;
  postgres::Statement park_key_;
  postgres::Statement is_parked_;
  postgres::Statement first_parked_;
};

/// Text that PostgreSQL can store, of at most `most` characters: NUL and bytes that are not UTF-8
/// become \xNN.
[[nodiscard]] std::string storable_text(std::string_view text, std::size_t most);

}  // namespace pawl::ledger
