#pragma once

#include <string>

#include "ledger/types.hpp"
#include "postgres/session.hpp"
#include "postgres/statement.hpp"

namespace pawl::ledger {

/// What names an owner in pawl.suspects, because it runs a message alone, and in
/// pawl.first_fetches, because it fetches a partition alone. The end of an owner that is named
/// counts as a crash.
class Marks {
 public:
  Marks(const std::string& schema, ConsumerId consumer);

  /// The owner has survived what its marks of the partition name. The counts stay. Throws
  /// postgres::Error, postgres::InDoubt.
  void remove(postgres::Session& session, const TopicPartition& partition,
              const std::string& owner) const;

 private:
  ConsumerId consumer_;
  postgres::Statement remove_;
};

}  // namespace pawl::ledger
