#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ledger/instant.hpp"
#include "ledger/types.hpp"
#include "postgres/array_elements.hpp"
#include "postgres/request.hpp"
#include "postgres/statement.hpp"

namespace pawl::ledger {

/// The keys of a batch, sorted and each once; reusable.
struct KeysToClaim {
  postgres::ArrayElements keys;
  postgres::ArrayElements payload_hashes;
  postgres::ArrayElements offsets;

  void clear();
  void add(const std::string& key, std::int64_t payload_hash, std::int64_t offset);
};

/// What the claim of a batch's keys answered.
struct ClaimedKeys {
  std::vector<std::int64_t> offsets;  ///< of the messages whose keys are claimed, in no order
  std::string transaction;            ///< its id; empty when none was claimed
};

/// What is stored under a key of a batch that was claimed before.
struct EarlierKey {
  std::size_t place = 0;  ///< of the key among those that were asked for, from 0
  std::int64_t payload_hash = 0;
  std::optional<std::string> response;
  Instant created;  ///< since when it vouches
};

/// Responses and the keys that they are stored with; each key once.
struct KeyResponses {
  postgres::ArrayElements keys;
  postgres::ArrayElements responses;

  void add(const std::string& key, std::string_view response);
  [[nodiscard]] std::size_t size() const { return keys.size(); }
};

/// pawl.idempotency_keys for many messages of one partition at once; see IdempotencyKeys. Holds
/// statements only; one instance serves all threads.
class BatchKeys {
 public:
  explicit BatchKeys(const std::string& schema);

  /// Claims in the keys' order whatever the messages' order is, so that two batches which share
  /// keys wait for each other instead of locking each other out.
  /// Raises as IdempotencyKeys::claim() does.
  void claim(postgres::Request& request, const Scope& scope, SourceId source,
             std::int32_t partition, const KeysToClaim& keys) const;
  [[nodiscard]] static ClaimedKeys claimed(const PGresult* rows);

  /// Of keys that were not claimed. One that is missing from the answer was removed meanwhile.
  /// Raises PW017 as a claim does.
  void look_up(postgres::Request& request, const Scope& scope, const postgres::ArrayElements& keys,
               bool with_responses) const;
  [[nodiscard]] static std::vector<EarlierKey> found(const PGresult* rows);

  /// With keys that this transaction has claimed.
  [[nodiscard]] postgres::Request store_responses(ScopeId scope,
                                                  const KeyResponses& responses) const;

 private:
  postgres::Statement claim_;
  postgres::Statement lookup_;
  postgres::Statement respond_;
};

}  // namespace pawl::ledger
