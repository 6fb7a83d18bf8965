#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "ledger/types.hpp"
#include "postgres/session.hpp"
#include "postgres/statement.hpp"

namespace pawl::ledger {

/// pawl.suspects: which message may be why a process ended without letting go, and how many
/// processes have ended since while they ran it alone (docs/architecture/probation.md).
class Suspects {
 public:
  Suspects(const std::string& schema, ConsumerId consumer);

  /// Before the suspect runs: leaves a mark that `owner` runs it, committed. Returns how many
  /// processes have ended at this message while their mark stood; at `most` no mark is left, since
  /// it will not run. Nullopt: somebody else acquired the partition meanwhile.
  std::optional<std::uint32_t> mark(postgres::Session& session, const TopicPartition& partition,
                                    OwnerEpoch epoch, std::int64_t offset, const std::string& owner,
                                    std::uint32_t most) const;

  /// The message that a process ran alone when it ended, or that has ended processes and is not
  /// behind. Nullopt: there is none.
  std::optional<std::int64_t> marked(postgres::Session& session,
                                     const TopicPartition& partition) const;

  /// Whether the session is open and idle, so that its client is there. A session in the middle of
  /// a statement does not notice the end of its client, so it counts as ended. So does one that the
  /// server does not show to this role.
  bool is_alive(postgres::Session& session, const postgres::Backend& backend) const;

  /// The message is behind.
  void clear(postgres::Session& session, const TopicPartition& partition,
             const std::string& owner) const;

 private:
  ConsumerId consumer_;
  postgres::Statement mark_;
  postgres::Statement marked_;
  postgres::Statement clear_;
  postgres::Statement is_alive_;
};

}  // namespace pawl::ledger
