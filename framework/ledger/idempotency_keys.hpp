#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "ledger/instant.hpp"
#include "ledger/types.hpp"
#include "pawl/message.hpp"
#include "postgres/array_elements.hpp"
#include "postgres/request.hpp"
#include "postgres/session.hpp"
#include "postgres/statement.hpp"

namespace pawl::ledger {

/// Views what it was made of.
struct Claim {
  const Scope& scope;
  std::string_view key;
  std::int64_t payload_hash = 0;
  SourceId source{};
  std::int32_t partition = 0;
  std::int64_t offset = 0;
  /// Claims nothing while this record key is parked.
  std::optional<RecordKey> unless_parked = {};
  /// For pawl.publish, as message::trace_setting() has it.
  std::string trace = {};
};

/// What is stored under a key that was claimed before.
struct StoredKey {
  std::int64_t payload_hash = 0;
  std::string topic;
  std::int32_t partition = 0;
  std::int64_t offset = 0;
  std::optional<std::string> response;
  std::string transaction;  ///< id of the transaction that asked, for the advance behind it
  Instant created;          ///< since when it vouches
};

/// Whether a duplicate must renew its key: it came to Kafka later than the key's time, so the key
/// could be removed while the duplicate is still young enough to come again. Without a time of its
/// own nobody could tell how old it is.
[[nodiscard]] constexpr bool renews(std::optional<Timestamp> timestamp, Instant created) {
  return timestamp > created;
}

/// pawl.idempotency_keys. The claim is the first statement of a message's transaction: while it is
/// uncommitted, another claim of the same key waits for it, and takes over when it is rolled back.
/// Holds statements only; one instance serves all threads.
class IdempotencyKeys {
 public:
  explicit IdempotencyKeys(const std::string& schema);

  /// All claims raise PW017 where the scope does not have its number in this database. This one
  /// claims nothing for a duplicate, nor behind a parked record key (DeadLetters::ask_parked tells
  /// one from the other).
  void claim(postgres::Request& request, const Claim& claim) const;

  /// A claim that raises PW008 instead of claiming nothing: for pipelines, in which
  /// more follows that must not run then.
  void claim_or_raise(postgres::Request& request, const Claim& claim) const;

  /// Instead of a claim for a message that has no key: only names the transaction. `trace`: as
  /// Claim has it.
  void name_transaction(postgres::Request& request, std::string_view trace = {}) const;
  /// The same later in a transaction, whose session the handler may have changed since.
  void name_open_transaction(postgres::Request& request, std::string_view trace = {}) const;

  /// Reads the answer to a claim: the transaction's id, or nullopt for a duplicate.
  [[nodiscard]] static std::optional<std::string> claimed_by(const PGresult* rows);

  void look_up(postgres::Request& request, ScopeId scope, const std::string& key) const;
  /// Nullopt: the key was deleted between claim and look-up; run the message again.
  [[nodiscard]] static std::optional<StoredKey> read(const PGresult* rows);

  /// Makes keys as young as the duplicates that renews() them, each once; raises PW011 when one is
  /// gone. Belongs behind the handler, in the transaction that advances past the duplicates.
  void renew(postgres::Request& request, ScopeId scope, const postgres::ArrayElements& keys) const;

  [[nodiscard]] postgres::Request store_response(ScopeId scope, const std::string& key,
                                                 const std::string& response) const;

  /// The number of a scope, made when it is new. Stores that the source uses it, before its first
  /// key, and for how long keys are kept for it, unless it is kept for longer so far (pruning
  /// stores what is configured): pruning asks what its partitions still need (pawl.scope_sources).
  ScopeId scope(postgres::Session& session, const std::string& name, SourceId source,
                std::chrono::milliseconds retention) const;

 private:
  postgres::Statement claim_;
  postgres::Statement claim_unless_parked_;
  postgres::Statement unchecked_;
  postgres::Statement name_;
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
