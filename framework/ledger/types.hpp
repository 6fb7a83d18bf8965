#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ledger/halt.hpp"
#include "ledger/position.hpp"
#include "pawl/topic_partition.hpp"
#include "postgres/session.hpp"

namespace pawl::ledger {

/// Fencing token of the offset register: only the holder of the row's current epoch may advance.
enum class OwnerEpoch : std::int64_t {};

/// A row of pawl.consumers: one (cluster name, group).
enum class ConsumerId : std::int32_t {};

/// A row of pawl.consumer_topics; where a key was first seen.
enum class SourceId : std::int32_t {};

enum class ScopeId : std::int32_t {};

/// A row of pawl.idempotency_scopes. The number is a fact of one database, and verified by the name
/// wherever keys are claimed or looked up under it.
struct Scope {
  ScopeId id{};
  std::string name;
};

/// Whose messages wait for each other once one of them is parked. Views its message.
struct RecordKey {
  ConsumerId consumer{};
  std::string_view topic;
  std::string_view key;
};

enum class PartitionState { kRunning, kPaused, kHalted };

/// How a message ended, as the register counts it.
enum class Outcome { kApplied, kDuplicate, kSkipped, kUnchecked, kDead, kParked, kEndOfLog };

/// A row of pawl.partition_fences: what those hold who finish messages of the partition.
enum class FenceId : std::int32_t {};

/// Who may finish messages: the owner of the partition's epoch.
struct Fence {
  FenceId id{};
  OwnerEpoch epoch{};
  /// As its owner acquired it or has seen it stored since. Behind that the database lost commits.
  Position stored{};
  /// Offset of the message before it in its order key that was finished since the acquire. Where it
  /// is not finished the database lost commits, also if the stored offset has not moved since.
  std::optional<std::int64_t> predecessor = {};
};

/// A record that is ahead of the stored offset.
struct RecordAhead {
  std::int64_t offset = 0;
  std::optional<std::int32_t> leader_epoch;
  std::int64_t digest = 0;  ///< message::record_digest()
};

/// What is known of a message above the stored offset.
struct KnownAhead {
  RecordAhead record;
  std::optional<Outcome> outcome;  ///< nullopt: it is not finished
  std::uint32_t attempts = 0;      ///< failed ones
};

/// What is known of a partition's first fetch under the owner before, when it is acquired.
struct FirstFetch {
  bool moved = false;        ///< the stored offset has moved since that owner acquired it
  bool begun = false;        ///< something had arrived, as that owner noted
  bool owner_lives = false;  ///< that owner's session is open
  std::int64_t offset = -1;  ///< the next offset at which `crashes` were counted
  std::uint32_t crashes = 0;
  bool marked = false;  ///< that owner fetched the partition alone, and nothing had arrived
};

/// What the register knew when a partition was acquired. Definitive: no commit of an older owner
/// can come after it.
struct Acquired {
  OwnerEpoch epoch{};
  Position stored;
  PartitionState state = PartitionState::kRunning;
  std::string operator_reason;  ///< of the last pause or resume
  Halt halt;                    ///< if `state` is halted
  std::string topic_id;         ///< empty when unknown
  std::optional<std::int32_t> leader_epoch;
  bool released = true;        ///< the owner before gave it back
  bool suspects_left = false;  ///< and messages were on probation then
  std::string previous_owner;
  std::optional<postgres::Backend> previous_backend;
  FirstFetch first_fetch;
  Fence fence;
  std::vector<KnownAhead> ahead;  ///< finished or tried above `stored`, by offset
};

}  // namespace pawl::ledger
