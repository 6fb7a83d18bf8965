#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "ledger/types.hpp"
#include "postgres/session.hpp"

namespace pawl::ledger {

/// A row of pawl.idempotency_keys, as an operator sees it.
struct KeyRow {
  std::string scope;
  std::string consumer;  ///< "cluster/group" that processed the message
  std::string topic;
  std::int32_t partition = 0;
  std::int64_t offset = 0;
  std::string created_at;  ///< RFC 3339, UTC: when it was claimed, or renewed by a late duplicate
  std::int64_t payload_hash = 0;
  std::optional<std::string> response;  ///< bytes; no more than were asked for
  std::size_t response_bytes = 0;       ///< all that are stored
};

/// A scope that was searched.
struct SearchedScope {
  std::string name;
  std::string pruned_to;  ///< RFC 3339, UTC; empty: nothing was removed
};

/// What pawl.idempotency_keys takes on disk.
struct KeyTableSize {
  double rows = 0;  ///< PostgreSQL's estimate
  std::int64_t table_bytes = 0;
  std::int64_t index_bytes = 0;
};

/// The scopes in which a consumer claims keys; with a name only that one, whoever uses it.
std::vector<SearchedScope> searched_scopes(postgres::Session& session, const std::string& schema,
                                           ConsumerId consumer, const std::string& name);

/// The key in these scopes; by scope. `most`: so many bytes of each response.
std::vector<KeyRow> find_key(postgres::Session& session, const std::string& schema,
                             const std::vector<SearchedScope>& scopes, const std::string& key,
                             std::size_t most);

/// The key in the scopes of the database that are not among these; by scope.
std::vector<KeyRow> find_key_elsewhere(postgres::Session& session, const std::string& schema,
                                       const std::vector<SearchedScope>& scopes,
                                       const std::string& key, std::size_t most);

/// Dead letters of the consumer with this idempotency key, oldest first.
std::vector<std::int64_t> letters_with_key(postgres::Session& session, const std::string& schema,
                                           ConsumerId consumer, const std::string& key);

/// A partition that halts at a message.
struct HaltedAt {
  TopicPartition partition;
  std::int64_t offset = -1;
};
/// Where the consumer halts at a message with this idempotency key.
std::vector<HaltedAt> halts_with_key(postgres::Session& session, const std::string& schema,
                                     ConsumerId consumer, const std::string& key);

/// Numbers of scopes that have keys although pawl.idempotency_scopes does not have them, as after a
/// partial restore; ascending.
std::vector<std::int64_t> missing_scopes(postgres::Session& session, const std::string& schema);

KeyTableSize key_table_size(postgres::Session& session, const std::string& schema);

}  // namespace pawl::ledger
