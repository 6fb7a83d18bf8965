#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "ledger/instant.hpp"
#include "ledger/lease.hpp"
#include "ledger/types.hpp"
#include "postgres/session.hpp"
#include "postgres/statement.hpp"

namespace pawl::ledger {

/// A topic whose messages claim keys in a scope, and how long its consumer wants them to be kept.
struct ScopeUser {
  bool own = false;  ///< of the consumer that removes
  std::string topic;
  std::optional<std::chrono::milliseconds> retention;  ///< zero: for ever; nullopt: never stored
};

/// A scope in which topics of this consumer claim keys.
struct PrunableScope {
  ScopeId id{};
  std::string name;
  std::optional<Instant> pruned_to;  ///< keys created before may be gone
  std::optional<Instant> swept_to;   ///< keys that might go before are gone
  std::vector<ScopeUser> users;
};

/// A topic whose messages claim keys in such a scope: this consumer's, or one of another consumer
/// of the same Kafka cluster.
struct ScopeSource {
  SourceId id{};
  std::string topic;
};

/// The end of one partition's log, as Kafka told it.
struct KnownEnd {
  SourceId source{};
  std::int32_t partition = 0;
  std::int64_t end = 0;  ///< the high watermark
  std::string topic_id;  ///< empty where the broker has none
};

/// Up to when keys of a scope may go.
struct Cutoff {
  std::optional<Instant> keys;  ///< nullopt: none may
  std::string held_by;          ///< what waits and keeps younger ones; empty: nothing does
  /// A partition whose last record says a time that cannot be, so that the time of its processing
  /// counts instead; empty: none.
  std::string unusable_time;
};

/// Blocks of pawl.idempotency_keys, from `begin` to before `end`.
struct BlockRange {
  std::int64_t begin = 0;
  std::int64_t end = 0;
};

struct KeyCount {
  std::int64_t keys = 0;
  bool estimated = false;
};

struct Swept {
  std::int64_t keys = 0;
  std::int64_t next = 0;  ///< the block to go on at
};

/// Removal of keys that are no longer needed (migrations/0003_idempotency_keys.sql). What may go,
/// and that it goes in small transactions; when and how fast is engine::RetentionPass's. All
/// statements throw postgres::Error or postgres::InDoubt; all may be repeated. Any thread.
class Retention {
 public:
  Retention(std::string schema, ConsumerId consumer);

  [[nodiscard]] Instant now(postgres::Session& session) const;

  /// The right to remove for this consumer.
  [[nodiscard]] const Lease& lease() const { return lease_; }

  /// Stores that a topic of this consumer claims keys in a scope, and how long they are kept for
  /// it, if both are known. False: the scope is there, but the topic has not met first contact.
  [[nodiscard]] bool register_use(postgres::Session& session, const std::string& scope,
                                  const std::string& topic,
                                  std::chrono::milliseconds retention) const;
  [[nodiscard]] std::vector<PrunableScope> scopes(postgres::Session& session) const;
  [[nodiscard]] std::vector<ScopeSource> sources(postgres::Session& session) const;

  /// `asked_at` must have been now() before the ends were asked for. `store`: pruned_to is stored
  /// (and durable) when this returns; without it nothing changes.
  [[nodiscard]] Cutoff cutoff(postgres::Session& session, ScopeId scope,
                              std::chrono::milliseconds retention, Instant asked_at,
                              const std::vector<KnownEnd>& ends, bool store) const;

  /// Blocks of the table now.
  [[nodiscard]] std::int64_t blocks(postgres::Session& session) const;
  /// Removes up to `most` keys of these scopes, created before their cutoffs, from some blocks: one
  /// transaction whose COMMIT does not wait for the disk. Keys that a dead letter may need stay.
  [[nodiscard]] Swept sweep(postgres::Session& session, const BlockRange& blocks,
                            const std::map<ScopeId, Instant>& cutoffs, std::int64_t most) const;
  void finish_sweep(postgres::Session& session, const std::map<ScopeId, Instant>& cutoffs,
                    std::int64_t removed) const;

  /// As many blocks of keys are read in a second or two: 512 MiB.
  static constexpr std::int64_t kMostCounted = 65536;
  /// What sweeps would remove. Of a table that has more than `most_blocks` about that many are
  /// read, and the rest is estimated from them.
  [[nodiscard]] KeyCount count_keys(postgres::Session& session,
                                    const std::map<ScopeId, Instant>& cutoffs,
                                    std::int64_t most_blocks = kMostCounted) const;

 private:
  std::string schema_;
  ConsumerId consumer_;
  Lease lease_;
  postgres::Statement sweep_;
  postgres::Statement cutoff_;
  postgres::Statement finish_scope_;
  postgres::Statement finish_;
};

/// pruned_to of a scope; nullopt: nothing was removed, or there is no such scope.
[[nodiscard]] std::optional<Instant> pruned_to(postgres::Session& session,
                                               const std::string& schema, const std::string& scope);

/// The latest pruned_to of the scopes in which a consumer's topic claims keys: of messages that are
/// older, duplicates may not be recognised any more. Nullopt: nothing was removed yet.
[[nodiscard]] std::optional<Instant> pruned_to(postgres::Session& session,
                                               const std::string& schema, ConsumerId consumer,
                                               const std::string& topic);

}  // namespace pawl::ledger
