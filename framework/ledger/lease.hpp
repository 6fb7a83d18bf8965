#pragma once

#include <chrono>
#include <string>
#include <string_view>

#include "ledger/types.hpp"
#include "postgres/session.hpp"
#include "postgres/statement.hpp"

namespace pawl::ledger {

/// The right to do one kind of a consumer's background work, which one of its processes has at a
/// time. It ends by itself, so that nobody waits for a process that died: whoever holds it extends
/// it in time, or must not go on. The server's clock counts. Any thread.
class Lease {
 public:
  /// Whether a crash of the database may take it back.
  enum class Durability {
    kDurable,  ///< no: what is done under it has effects outside of the database
    kRelaxed   ///< yes: its COMMIT does not wait for the disk
  };

  /// `table`: one of the schema pawl, with consumer_id, holder and lease_until. `name`: of the kind
  /// of work, in the names of the statements.
  Lease(std::string_view name, std::string_view table, Durability durability,
        const std::string& schema, ConsumerId consumer);

  /// Takes or extends it, for `time` from now on. False: another holder has it. Throws
  /// postgres::Error or postgres::InDoubt; may be repeated.
  [[nodiscard]] bool take(postgres::Session& session, const std::string& holder,
                          std::chrono::milliseconds time) const;
  /// Gives it back, if it is the holder's. Throws and repeats as take().
  void release(postgres::Session& session, const std::string& holder) const;

 private:
  Durability durability_;
  ConsumerId consumer_;
  postgres::Statement take_;
  postgres::Statement release_;
};

}  // namespace pawl::ledger
