#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "ledger/types.hpp"
#include "postgres/array_elements.hpp"
#include "postgres/parameters.hpp"
#include "postgres/session.hpp"
#include "postgres/statement.hpp"

namespace pawl::ledger {

struct Claim {
  ScopeId scope{};
  std::string key;
  std::int64_t payload_hash = 0;
  SourceId source{};
  std::int32_t partition = 0;
  std::int64_t offset = 0;
};

/// What is stored under a key that was claimed before.
struct StoredKey {
  std::int64_t payload_hash = 0;
  std::string topic;
  std::int32_t partition = 0;
  std::int64_t offset = 0;
  std::optional<std::string> response;
  std::string transaction;      ///< id of the transaction that asked, for the advance behind it
  std::int64_t created_ms = 0;  ///< since when it vouches, milliseconds since 1970, UTC
};

/// Whether a duplicate must renew its key: it came to Kafka later than the key's time, so the key
/// could be removed while the duplicate is still young enough to come again. Without a time of its
/// own (-1) nobody could tell how old it is.
[[nodiscard]] constexpr bool renews(std::int64_t timestamp_ms, std::int64_t created_ms) {
  return timestamp_ms > created_ms;
}

/// pawl.idempotency_keys. The claim is the first statement of a message's transaction: while it is
/// uncommitted, another claim of the same key waits for it, and takes over when it is rolled back.
/// Holds statements only; one instance serves all threads.
class IdempotencyKeys {
 public:
  explicit IdempotencyKeys(const std::string& schema);

  [[nodiscard]] const postgres::Statement& claim_statement() const { return claim_; }
  void fill(postgres::Parameters& parameters, const Claim& claim) const;

  /// The same, claiming nothing while the record key is parked (DeadLetters::is_parked_statement
  /// tells that from a duplicate). Parameters: fill(), then DeadLetters::fill_record_key().
  [[nodiscard]] const postgres::Statement& claim_unless_parked_statement() const {
    return claim_unless_parked_;
  }

  /// The same, RAISING kRefusedClaimState instead of claiming nothing: for flights in which more
  /// follows that must not run then.
  [[nodiscard]] const postgres::Statement& claim_or_raise_statement(bool unless_parked) const {
    return unless_parked ? claim_or_raise_unless_parked_ : claim_or_raise_;
  }

  /// Instead of a claim for a message that has no key: only names the transaction.
  [[nodiscard]] const postgres::Statement& unchecked_statement() const { return unchecked_; }

  /// Reads the answer to a claim: the transaction's id, or nullopt for a duplicate.
  [[nodiscard]] static std::optional<std::string> claimed_by(const PGresult* rows);

  [[nodiscard]] const postgres::Statement& lookup_statement() const { return lookup_; }
  void fill_lookup(postgres::Parameters& parameters, ScopeId scope, const std::string& key) const;
  /// Nullopt: the key was deleted between claim and look-up; run the message again.
  [[nodiscard]] static std::optional<StoredKey> read(const PGresult* rows);

  /// Makes keys as young as the duplicates that renews() them, each once; raises 40001 when one is
  /// gone. Belongs behind the handler, in the transaction that advances past the duplicates.
  [[nodiscard]] const postgres::Statement& renew_statement() const { return renew_; }
  void fill_renewal(postgres::Parameters& parameters, ScopeId scope,
                    const postgres::ArrayElements& keys) const;

  [[nodiscard]] const postgres::Statement& store_response_statement() const { return respond_; }
  void fill_response(postgres::Parameters& parameters, ScopeId scope, const std::string& key,
                     const std::string& response) const;

  /// The number of a scope, made when it is new. Stores that the source uses it, before its first
  /// key: pruning asks what its partitions still need (pawl.scope_sources).
  ScopeId scope(postgres::Session& session, const std::string& name, SourceId source) const;

 private:
  postgres::Statement claim_;
  postgres::Statement claim_unless_parked_;
  postgres::Statement unchecked_;
  postgres::Statement claim_or_raise_;
  postgres::Statement claim_or_raise_unless_parked_;
  postgres::Statement lookup_;
  postgres::Statement renew_;
  postgres::Statement respond_;
  postgres::Statement insert_scope_;
  postgres::Statement insert_use_;
  postgres::Statement find_scope_;
};

}  // namespace pawl::ledger
