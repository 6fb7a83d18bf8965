#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "ledger/types.hpp"
#include "postgres/request.hpp"
#include "postgres/session.hpp"
#include "postgres/statement.hpp"

namespace pawl::ledger {

/// pawl.first_fetches: how many processes have ended while they fetched a partition's next message
/// (docs/architecture/probation.md, "Crash loops"). Holds statements only. Each member throws
/// postgres::Error, postgres::InDoubt.
class FirstFetches {
 public:
  FirstFetches(const std::string& schema, ConsumerId consumer);

  /// For the transaction of an acquire, before it: locks the register's row as the acquire does.
  [[nodiscard]] postgres::Request known(const TopicPartition& partition) const;
  [[nodiscard]] static FirstFetch read_known(const PGresult* rows);

  /// Something has arrived since the acquires that raised these epochs. Stored only if the
  /// register's row does not show it.
  void note_begun(postgres::Session& session,
                  const std::map<TopicPartition, OwnerEpoch>& begun) const;

  /// Stores that `crashes` processes have ended at this offset. Nothing if another owner has
  /// acquired the partition meanwhile.
  void count(postgres::Session& session, const TopicPartition& partition, OwnerEpoch epoch,
             std::int64_t offset, std::uint32_t crashes) const;
  /// Before the fetch: `owner` fetches the partition alone, committed, until the mark is removed
  /// (Marks). False: another owner has acquired it meanwhile.
  [[nodiscard]] bool mark(postgres::Session& session, const TopicPartition& partition,
                          OwnerEpoch epoch, const std::string& owner) const;
  /// Nothing is counted any more. Nothing if another owner has acquired the partition meanwhile.
  void forget(postgres::Session& session, const TopicPartition& partition, OwnerEpoch epoch) const;

 private:
  ConsumerId consumer_;
  postgres::Statement known_;
  postgres::Statement note_begun_;
  postgres::Statement count_;
  postgres::Statement mark_;
  postgres::Statement forget_;
};

}  // namespace pawl::ledger
