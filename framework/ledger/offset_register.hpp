#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "ledger/first_fetches.hpp"
#include "ledger/marks.hpp"
#include "ledger/messages_ahead.hpp"
#include "ledger/types.hpp"
#include "pawl/message.hpp"
#include "postgres/request.hpp"
#include "postgres/session.hpp"
#include "postgres/statement.hpp"

namespace pawl::ledger {

/// One message's step in the register, the last statement of its transaction.
struct Advance {
  OwnerEpoch epoch{};
  Position from;  ///< behind the predecessor in this assignment generation
  Position to;
  std::string transaction;  ///< id of the transaction that claimed the key; empty: unchecked
  Outcome outcome = Outcome::kApplied;
  bool halted = false;  ///< the row says that the partition is halted
  std::optional<std::int32_t> leader_epoch;
  std::optional<Timestamp> timestamp;
};

/// How the messages of a batch ended, as the register counts them.
struct BatchCounts {
  std::int64_t applied = 0;  ///< the unchecked ones too
  std::int64_t duplicates = 0;
  std::int64_t unchecked = 0;
};

/// A row as its owner sees it when it looks for changes that are not its own.
struct Watched {
  OwnerEpoch epoch{};
  Position stored;
  PartitionState state = PartitionState::kRunning;
};

/// An owner, by its name in the register, and the session in which it acquired.
struct Holder {
  std::string name;
  postgres::Backend session;
};

/// A topic whose start is resolved.
struct KnownTopic {
  SourceId id{};
  std::int32_t partitions = 0;  ///< as many as there were at first contact
};

/// Where a topic starts.
struct FirstContact {
  std::string topic;
  std::string start_policy;
  std::vector<Position> starts;  ///< by partition
  std::string reason = {};       ///< for the history; empty: the policy
  std::string topic_id = {};     ///< that the offsets are of; empty: whichever is acquired first
};

/// What became of a first contact.
struct MetTopic {
  SourceId source{};
  bool ours = false;  ///< false: another process' resolution stands, and nothing was changed
};

/// pawl.processed_kafka_offsets: a compare-and-set register with a fencing token, one row a
/// partition (docs/architecture/offset-store.md). Holds statements only: one instance serves
/// all threads, each with its own session. A member for each statement: whoever may write the
/// register stands in one file.
class OffsetRegister {
 public:
  OffsetRegister(const std::string& schema, ConsumerId consumer);

  /// Raises the epoch under the row lock; waits for an old owner's commit in flight up to the lock
  /// timeout (Error 55P03). Nullopt: the partition has no row, see first_contact().
  std::optional<Acquired> acquire(postgres::Session& session, const TopicPartition& partition,
                                  const std::string& owner) const;

  /// For what is finished out of the log's order.
  [[nodiscard]] const MessagesAhead& ahead() const { return ahead_; }
  /// For what ends processes before a handler sees it.
  [[nodiscard]] const FirstFetches& first_fetches() const { return first_fetches_; }
  /// For what runs, or is fetched, alone.
  [[nodiscard]] const Marks& marks() const { return marks_; }

  void advance(postgres::Request& request, const TopicPartition& partition,
               const Advance& step) const;
  /// For pipelines of transactions, none of which a handler's statements can end:
  /// Advance::transaction stays empty. The outcome: kApplied or kDuplicate.
  void advance_pipelined(postgres::Request& request, const TopicPartition& partition,
                         const Advance& step) const;

  /// The step of a batch: from its first message's predecessor to its last message, whatever the
  /// outcome that `step` says.
  void advance_batch(postgres::Request& request, const TopicPartition& partition,
                     const Advance& step, const BatchCounts& counts) const;

  /// Advance in a transaction of its own, for the holes at a log's end (control records).
  void advance_alone(postgres::Session& session, const TopicPartition& partition,
                     const Advance& step) const;

  /// False: somebody else acquired meanwhile; nothing was changed. `suspects_left`: messages are on
  /// probation still.
  bool release(postgres::Session& session, const TopicPartition& partition, OwnerEpoch epoch,
               bool suspects_left) const;
  bool halt(postgres::Session& session, const TopicPartition& partition, OwnerEpoch epoch,
            const Halt& halt) const;

  /// A commit that waits for the disk, and so for everything that the session committed before.
  /// False: somebody else acquired meanwhile; nothing was written, and nothing waited for.
  [[nodiscard]] bool commit_durably(postgres::Session& session, const TopicPartition& partition,
                                    OwnerEpoch epoch) const;

  /// Counts one failed attempt of the message at `offset`; the attempts so far, also of earlier
  /// processes. Nullopt: somebody else acquired meanwhile.
  std::optional<std::uint32_t> record_attempt(postgres::Session& session,
                                              const TopicPartition& partition, OwnerEpoch epoch,
                                              std::int64_t offset) const;

  /// Stores the topic id that the owner found in Kafka; false when fenced.
  bool store_topic_id(postgres::Session& session, const TopicPartition& partition, OwnerEpoch epoch,
                      const std::string& topic_id) const;

  /// The rows with these epochs name this session as their owner's from now on: an owner that
  /// replaced its session keeps them. Returns their partitions, all of `held` through a pooler,
  /// where rows name no session. A row that is locked just now is not waited for, and is missing.
  [[nodiscard]] std::set<TopicPartition> name_session(
      postgres::Session& session, const std::map<TopicPartition, OwnerEpoch>& held) const;

  /// The rows that `owner` holds now; a row missing here was taken by somebody else.
  std::map<TopicPartition, Watched> owned_by(postgres::Session& session,
                                             const std::string& owner) const;

  /// Who the register says holds the partition, without waiting for its row: nullopt when nobody,
  /// `owner` itself, or somebody whose session is unknown (through a pooler).
  std::optional<Holder> other_holder(postgres::Session& session, const TopicPartition& partition,
                                     const std::string& owner) const;

  /// The topic's row in pawl.consumer_topics once its start is resolved.
  std::optional<KnownTopic> find_topic(postgres::Session& session, const std::string& topic) const;

  /// Stores the start of all partitions in one transaction; when another process did so first,
  /// its resolution stands. Consumers that wait for it begin as soon as it is stored, so nobody may
  /// correct it afterwards without an acquire.
  MetTopic first_contact(postgres::Session& session, const FirstContact& contact) const;

  /// A partition that appeared after first contact: starts at 0.
  void add_partition(postgres::Session& session, const TopicPartition& partition) const;

 private:
  ConsumerId consumer_;
  MessagesAhead ahead_;
  FirstFetches first_fetches_;
  Marks marks_;
  postgres::Statement acquire_;
  std::map<std::pair<Outcome, bool>, postgres::Statement> advance_;  ///< by outcome and halted
  postgres::Statement pipelined_applied_;
  postgres::Statement pipelined_duplicate_;
  postgres::Statement commit_durably_;
  postgres::Statement advance_batch_;
  postgres::Statement release_;
  postgres::Statement store_suspects_left_;
  postgres::Statement halt_;
  postgres::Statement suspects_left_;
  postgres::Statement record_attempt_;
  postgres::Statement store_topic_id_;
  postgres::Statement name_session_;
  postgres::Statement owned_by_;
  postgres::Statement other_holder_;
  postgres::Statement find_topic_;
  postgres::Statement insert_topic_;
  postgres::Statement insert_rows_;
  postgres::Statement add_partition_;
};

}  // namespace pawl::ledger
