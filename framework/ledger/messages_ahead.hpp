#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "ledger/types.hpp"
#include "pawl/message.hpp"
#include "postgres/request.hpp"
#include "postgres/session.hpp"
#include "postgres/statement.hpp"

namespace pawl::ledger {

/// The register's step over messages that are all finished.
struct Passing {
  Fence fence;
  Position from;
  Position to;
  std::int64_t messages = 0;  ///< between the two
  bool halted = false;        ///< the row says that the partition is halted
  std::optional<std::int32_t> leader_epoch;
  std::optional<Timestamp> timestamp;
};

/// pawl.messages_ahead and the fences: messages that are finished out of the log's order, and the
/// stored offset that follows (docs/architecture/concurrency.md). Holds statements
/// only: one instance serves all threads, each with its own session.
class MessagesAhead {
 public:
  MessagesAhead(const std::string& schema, ConsumerId consumer);

  /// Waits for whoever is raising the epoch. Goes before finish() in the same transaction, as a
  /// statement of its own: what finish() reads must be newer.
  [[nodiscard]] postgres::Request hold_fence(const Fence& fence) const;
  /// Goes between the two where the transaction keeps one snapshot: it fails with 40001 where the
  /// epoch was raised since.
  [[nodiscard]] postgres::Request keep_fence(const Fence& fence) const;
  /// The last statement of a message's transaction: raises PW001 where the epoch is not ours any
  /// more, PW003 where the transaction is not the one that claimed the key (empty: unchecked),
  /// PW002 where the message is finished already.
  void finish(postgres::Request& request, const Fence& fence, const RecordAhead& record,
              const std::string& transaction, Outcome outcome) const;

  /// Counts one failed attempt, in a transaction of its own; the attempts so far. Nullopt: the
  /// epoch is not ours any more.
  std::optional<std::uint32_t> count_attempt(postgres::Session& session, const Fence& fence,
                                             const RecordAhead& record) const;

  /// Moves the stored offset, counts what it passes and forgets it. Raises as an advance does, and
  /// where fewer messages are finished than are passed. `durably`: the commit waits for the disk.
  void pass(postgres::Session& session, const TopicPartition& partition, const Passing& passing,
            bool durably) const;

  /// What stands above the stored offset, by offset. Behind pawl.acquire in its transaction.
  [[nodiscard]] postgres::Request known(const TopicPartition& partition) const;
  /// Removes what stands at or below it. In the same transaction.
  [[nodiscard]] postgres::Request forget_passed(const TopicPartition& partition) const;
  [[nodiscard]] static std::vector<KnownAhead> read_known(const PGresult* rows);

 private:
  ConsumerId consumer_;
  postgres::Statement hold_fence_;
  postgres::Statement keep_fence_;
  postgres::Statement finish_;
  postgres::Statement count_attempt_;
  postgres::Statement pass_;
  postgres::Statement pass_halted_;
  postgres::Statement lock_row_;
  postgres::Statement known_;
  postgres::Statement forget_passed_;
};

}  // namespace pawl::ledger
