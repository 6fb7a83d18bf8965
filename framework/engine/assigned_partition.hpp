#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>

#include "engine/backoff.hpp"
#include "engine/batch_pace.hpp"
#include "engine/partition_status.hpp"
#include "engine/positions.hpp"
#include "kafka/client.hpp"
#include "kafka/partition_stream.hpp"
#include "kafka/record.hpp"
#include "ledger/types.hpp"

namespace pawl::engine {

/// One partition in the hands of a worker, from assignment to revocation. Owned and used by the
/// worker's thread only.
struct AssignedPartition {
  using Clock = std::chrono::steady_clock;

  enum class Phase {
    kAcquiring,    ///< the register has not given it to us yet, or must be asked again
    kPositioning,  ///< acquired; Kafka is being told where to deliver from
    kRunning,
    kStopped,  ///< halted or paused: waits for an operator
  };

  static constexpr std::size_t kFirstFlight = 4;

  /// A record, with its predecessor's offset noted when it was taken from the stream: a record
  /// lost or reordered after that cannot pass the register's compare.
  struct Item {
    kafka::Record record;
    std::int64_t previous;
    /// KIP-320: of the record, or of what stands before the end of the log; nullopt: unknown.
    std::optional<std::int32_t> leader_epoch;
  };

  /// Until when a batch waits, and when it is looked at meanwhile.
  struct Linger {
    Clock::time_point until;
    Clock::time_point look_again;
  };

  AssignedPartition(std::shared_ptr<kafka::PartitionStream> s, std::shared_ptr<PartitionStatus> st,
                    Backoff acquire_delay, Backoff retry_delay, BatchPace pace)
      : stream(std::move(s)),
        status(std::move(st)),
        batch_pace(std::move(pace)),
        acquire_backoff(acquire_delay),
        retry_backoff(retry_delay) {}

  [[nodiscard]] const TopicPartition& name() const { return stream->partition(); }

  /// When there is something to do with what is in the buffer.
  [[nodiscard]] Clock::time_point due() const {
    const bool lingers = phase == Phase::kRunning && linger;
    return lingers ? std::max(not_before, linger->look_again) : not_before;
  }

  void clear_buffer() {
    buffer.clear();
    linger.reset();
    unreadable = false;
  }

  /// Acquired over the connection that the worker has now. If not, a crash of the database may have
  /// taken back what `status` says, although the register still has our epoch.
  [[nodiscard]] bool held_here() const { return epoch && phase != Phase::kAcquiring; }

  /// Nothing is known of the message at hand for which it has to go alone.
  [[nodiscard]] bool head_is_plain() const {
    return on_probation == 0 && !row_halted && !one_try_only && !lost_in_handler && attempts == 0;
  }

  std::shared_ptr<kafka::PartitionStream> stream;
  std::shared_ptr<PartitionStatus> status;
  Phase phase = Phase::kAcquiring;
  Clock::time_point not_before{};  ///< nothing is tried before

  // What the register said.
  std::optional<ledger::OwnerEpoch> epoch;
  ledger::SourceId source{};
  std::string topic_id;
  std::int64_t stored = -1;                  ///< as committed by us since
  bool row_halted = false;                   ///< the row's state, until the next message is behind
  std::optional<std::int32_t> leader_epoch;  ///< KIP-320: of the record at `stored`, if known
  std::optional<kafka::LogRange> log_hint;   ///< asked for many partitions at once, a moment ago
  std::optional<postgres::Backend> previous_owner;  ///< another process' session, may hold locks

  // The stream since it was positioned.
  std::deque<Item> buffer;
  std::int64_t taken = -1;  ///< offset taken from the stream last
  bool first_pending = false;
  bool sought_twice = false;
  std::uint32_t failed_seeks = 0;
  std::optional<PositionRefusal> refusal;
  /// The last item of the buffer is an error: what comes next cannot be read, and nothing is taken
  /// from behind it.
  bool unreadable = false;
  Clock::time_point last_taken_at{};
  std::uint64_t answers_when_taken = 0;  ///< PartitionStatus::log_end_answers at that time

  // Messages that travel together (worker_flights.cpp).
  std::size_t flight_size = kFirstFlight;  ///< at most so many now
  std::size_t alone = 0;  ///< so many of the next go one by one, to say which of them fails
  std::size_t alone_after_none = 0;  ///< and so many when a flight lands without any

  // The message in hand.
  std::uint32_t attempts = 0;  ///< as counted in the register
  bool refused = false;        ///< the server had no room for it: disk, memory, connections
  /// A session was made anew for the message at this offset, since prepared statements were stale.
  std::optional<std::int64_t> renewed_for;
  /// The connection was lost while its handler ran; counted when it comes up again.
  std::optional<std::int64_t> lost_in_handler;
  std::uint32_t broken_connections = 0;  ///< so often by the message in hand
  /// So many messages, it first, may be why another process ended: each of them runs alone
  /// (worker_probation.cpp).
  std::uint32_t on_probation = 0;
  bool one_try_only = false;  ///< was halted at this message; tried once more by this process
  /// Membership must be shown before the register is asked again: somebody took the partition.
  bool must_prove = false;

  // Batches (worker_batches.cpp).
  BatchPace batch_pace;
  /// A batch that is not full waits for more.
  std::optional<Linger> linger;

  Backoff acquire_backoff;
  Backoff retry_backoff;
};

}  // namespace pawl::engine
