#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "ledger/types.hpp"
#include "postgres/session.hpp"

namespace pawl::ledger {

/// Messages above the stored offset, of a partition that runs messages side by side.
struct AheadView {
  std::int64_t finished = 0;
  std::int64_t up_to = -1;    ///< the highest offset of those
  std::int64_t trying = 0;    ///< that have failed, and are tried again
  std::int64_t attempts = 0;  ///< the most that one of them has failed
  std::string since;          ///< RFC 3339, UTC: the first of those was finished; empty: none is
  /// Of the message that has failed the most; nullopt: none is tried again.
  std::optional<std::int64_t> trying_offset = std::nullopt;
};

/// A message that was in hand when a process ended without letting go.
struct SuspectView {
  std::int64_t offset = -1;
  std::int64_t crashes = 0;  ///< processes that have ended since while they ran it alone
  bool runs = false;         ///< it runs now, and nothing else does beside it
};

/// What an operator may want to know of one partition.
struct RegisterRow {
  TopicPartition partition;
  Position stored;
  OwnerEpoch epoch{};
  std::string owner;     ///< who acquired it last; empty: nobody yet
  bool released = true;  ///< the owner gave it back cleanly
  PartitionState state = PartitionState::kRunning;
  std::string operator_reason;  ///< of the last pause or resume; empty: none, or halted since
  Halt halt;                    ///< if `state` is halted
  /// Failed attempts of the message that is tried now, and its offset. 0: none has failed.
  std::int64_t attempts = 0;
  std::optional<std::int64_t> attempts_offset;
  std::string state_since;           ///< RFC 3339, UTC
  std::string updated_at;            ///< RFC 3339, UTC: the last processed message or change
  std::int64_t since_update_ms = 0;  ///< since then, by PostgreSQL's clock
  std::int64_t base_offset = 0;      ///< the first offset that the counters below include
  std::int64_t applied = 0;
  std::int64_t duplicates = 0;
  std::int64_t skipped = 0;
  std::int64_t unchecked = 0;
  std::int64_t dead = 0;
  std::int64_t parked = 0;
  AheadView ahead;
  std::optional<SuspectView> suspect;  ///< behind the stored offset
  std::string acquired_at;             ///< RFC 3339, UTC; empty: never
  std::string topic_id;                ///< KIP-516: of the topic of `stored`; empty: unknown
  bool session_gone = false;  ///< the owner did not release it, but its session is not there

  /// Messages behind the stored offset since the counters began, however they ended.
  [[nodiscard]] std::int64_t processed() const {
    return applied + duplicates + skipped + dead + parked;
  }
  /// The next message, in a partition where each waits for the one before.
  [[nodiscard]] bool retrying() const {
    return state == PartitionState::kRunning && attempts > 0 && owned();
  }
  /// That, or any of those that run side by side.
  [[nodiscard]] bool any_retrying() const {
    return retrying() || (state == PartitionState::kRunning && ahead.trying > 0 && owned());
  }
  /// Of the message that is tried again; nullopt: none is.
  [[nodiscard]] std::optional<std::int64_t> retried_offset() const {
    if (retrying())
      return attempts_offset;
    return any_retrying() ? ahead.trying_offset : std::nullopt;
  }
  /// Failed attempts of that message, or of the next one.
  [[nodiscard]] std::int64_t failed_attempts() const {
    return any_retrying() && !retrying() ? ahead.attempts : attempts;
  }
  [[nodiscard]] bool on_probation() const {
    return state == PartitionState::kRunning && suspect && owned();
  }
  [[nodiscard]] bool owned() const { return !released && !owner.empty() && !session_gone; }
};

/// A row of pawl.consumers.
struct KnownConsumer {
  ConsumerId id{};
  std::string kafka_cluster_id;
};

/// Reads the register without changing anything, unlike register_consumer(). Nullopt: this consumer
/// has never run against this database.
std::optional<KnownConsumer> find_consumer(postgres::Session& session, const std::string& schema,
                                           const std::string& cluster, const std::string& group);

/// The rows of one topic, or of all when it is empty; by topic and partition.
std::vector<RegisterRow> read_register(postgres::Session& session, const std::string& schema,
                                       ConsumerId consumer, const std::string& topic);

/// pawl.database_identity; what the metadata of offsets in Kafka names.
std::string database_id(postgres::Session& session, const std::string& schema);

/// What a role is for.
struct RoleUse {
  bool consumes = true;
  bool relays = false;   ///< publishes the outbox
  bool watches = false;  ///< looks how long messages of the outbox wait
};

/// Who owns pawl's schema, and so may grant rights on what is in it; empty: there is none.
std::string schema_owner(postgres::Session& session, const std::string& schema);

/// The rights on pawl's own tables that this session's role lacks, as GRANT would name them:
/// "INSERT on pawl.offset_history". Missing tables are not listed.
std::vector<std::string> missing_rights(postgres::Session& session, const std::string& schema,
                                        const RoleUse& use);

}  // namespace pawl::ledger
