#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "dead_letters/store/dead_letter.hpp"
#include "ledger/types.hpp"
#include "postgres/session.hpp"

namespace pawl::ledger {

/// Which of a consumer's dead letters are meant; what is empty says nothing.
struct DeadLetterFilter {
  std::vector<std::int64_t> ids;
  std::string topic;
  std::string handler;
  std::string reason;
  std::vector<std::string> statuses = {"scheduled", "dead", "parked"};  ///< as they are shown
  std::optional<std::chrono::seconds> older_than;
  std::optional<std::chrono::seconds> younger_than;
  std::optional<std::int32_t> partition;
  std::string sqlstate;  ///< or its beginning: "23"
  std::string idempotency_key;
  std::optional<std::string> record_key_hash;  ///< SHA-256 of the record key
};

/// kById is the order in which dead letters were stored.
enum class LetterOrder : std::uint8_t { kByPlace, kById };

/// Where a letter stands in the order of topic, partition, offset.
struct LetterPlace {
  TopicPartition partition;
  std::int64_t offset = -1;
  std::int64_t id = 0;
};
[[nodiscard]] LetterPlace place_in(const DeadLetter& letter);

struct DeadLetterCount {
  std::string topic;
  std::string handler;
  std::string reason;
  std::string status;  ///< as shown
  std::int64_t letters = 0;
  std::string oldest;
  std::int64_t retried = 0;  ///< of them, are tried again by themselves
  std::string next_due;      ///< of those whose turn it is; empty: none
  // Of the newest of them:
  std::string sqlstate = {};   ///< empty: PostgreSQL did not report the error
  std::string error = {};      ///< bounded
  std::string statement = {};  ///< as of a dead letter
};

/// Letters that nobody has replayed or discarded yet.
struct UnresolvedLetters {
  std::int64_t dead = 0;         ///< that wait for an operator
  std::int64_t retry_later = 0;  ///< that are tried again by themselves
  std::int64_t parked = 0;       ///< behind one of those
  bool more = false;             ///< there may be more than were counted
};

/// A record key with messages that are parked.
struct ParkedKey {
  std::string topic;
  std::optional<std::string> record_key;  ///< nullopt: not stored
  std::string record_key_hash;
  std::int64_t letters = 0;  ///< unresolved: the first one and those that wait behind it
  std::string oldest;
  DeadLetter first;  ///< its id, partition, offset, status (as shown), reason, statement and error
};

/// Reads pawl.dead_letters of one consumer.
class DeadLetterView {
 public:
  DeadLetterView(std::string schema, ConsumerId consumer)
      : schema_(std::move(schema)), consumer_(consumer) {}

  /// Up to `limit` letters in the order of topic, partition, offset.
  [[nodiscard]] std::vector<DeadLetter> list(postgres::Session& session,
                                             const DeadLetterFilter& filter, std::int64_t limit,
                                             bool with_payload) const;

  /// The same from behind a place on; nullopt: from the first.
  [[nodiscard]] std::vector<DeadLetter> page(postgres::Session& session,
                                             const DeadLetterFilter& filter, std::int64_t limit,
                                             const std::optional<LetterPlace>& after,
                                             bool with_payload,
                                             LetterOrder order = LetterOrder::kByPlace) const;

  /// Counts no further than `most`.
  [[nodiscard]] UnresolvedLetters count_unresolved(postgres::Session& session,
                                                   std::int64_t most) const;

  /// Hands every letter to `use`, in this order, until that returns false. Page by page: a letter
  /// that is resolved meanwhile may or may not be seen.
  void for_each(postgres::Session& session, const DeadLetterFilter& filter, bool with_payload,
                const std::function<bool(const DeadLetter&)>& use,
                LetterOrder order = LetterOrder::kByPlace) const;

  /// Most letters first, up to `limit`. `topic` empty: of all.
  [[nodiscard]] std::vector<ParkedKey> parked_keys(postgres::Session& session,
                                                   const std::string& topic,
                                                   std::int64_t limit) const;

  /// Parked messages of the record key of letter `id` that only an operator's replay ends: none of
  /// the key is dead any more, and none is tried again by itself.
  [[nodiscard]] std::int64_t left_parked(postgres::Session& session, std::int64_t id) const;
  /// Says so in the errors of such letters, in place of what they have waited for.
  void name_left_parked(postgres::Session& session, std::vector<DeadLetter>& letters) const;

  /// By topic, handler, reason and status as it is shown, most letters first.
  [[nodiscard]] std::vector<DeadLetterCount> counts(postgres::Session& session,
                                                    const DeadLetterFilter& filter) const;

 private:
  std::string schema_;
  ConsumerId consumer_;
};

}  // namespace pawl::ledger
