#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "dead_letters/store/view.hpp"
#include "ledger/types.hpp"
#include "postgres/request.hpp"
#include "postgres/session.hpp"
#include "postgres/statement.hpp"

namespace pawl::ledger {

/// What an operator erased.
struct Erased {
  std::int64_t letters = 0;
  std::int64_t skipped = 0;  ///< rows of pawl.skipped_messages
};

/// Why a replay of a dead letter failed.
struct ReplayFailure {
  std::string sqlstate;   ///< empty: PostgreSQL did not report the error
  std::string statement;  ///< of the handler: "sql[0]"; empty: it was none, or is unknown
  std::string error;
  std::string detail;  ///< may quote row values
};

/// What operators do to pawl.dead_letters other than replay. Each call is one synchronous
/// transaction; throws postgres::Error or postgres::InDoubt (repeat it: nothing is done twice).
class DeadLetterChanges {
 public:
  DeadLetterChanges(const std::string& schema, ConsumerId consumer);

  /// The last statement of a replay's transaction: raises kResolvedState when somebody else has
  /// resolved the letter, kParkedBehindState when it is not its turn.
  /// `transaction`: id of the one that claimed the key; empty: unchecked.
  void resolve(postgres::Request& request, std::int64_t letter, const std::string& transaction,
               Outcome outcome) const;

  /// Locks the row of the letter's record key, which whoever parks a message behind it changes.
  void lock_record_key(postgres::Request& request, std::int64_t letter) const;

  /// The letter of the same parked record key that must go before this one, if any; it may be
  /// resolved meanwhile, so resolve() decides.
  [[nodiscard]] std::optional<std::int64_t> letter_before(postgres::Session& session,
                                                          std::int64_t letter) const;

  /// Stores the failure as the last error of the letter, and counts the replay.
  void record_failure(postgres::Session& session, std::int64_t letter,
                      const ReplayFailure& failure) const;

  /// False: somebody has resolved it already.
  /// `in_history`: one by one, by a person; it stands in pawl.offset_history as well.
  bool discard(postgres::Session& session, std::int64_t letter, const std::string& reason,
               bool in_history = false) const;

  /// Stores unresolved letters as they are, except for those whose message has one already.
  /// Returns how many were stored.
  std::int64_t import(postgres::Session& session, const std::vector<DeadLetter>& letters) const;

  /// Removes the bytes of every dead letter and skipped message with this record key, and what may
  /// quote them. Unresolved letters are discarded, since nothing can replay them any more.
  Erased erase(postgres::Session& session, const std::string& record_key) const;

  /// What erase() would find.
  Erased count_erasable(postgres::Session& session, const std::string& record_key) const;

 private:
  ConsumerId consumer_;
  postgres::Statement replayed_;
  postgres::Statement lock_record_key_;
  postgres::Statement letter_before_;
  postgres::Statement failed_again_;
  postgres::Statement discard_;
  postgres::Statement record_discard_;
  postgres::Statement import_;
  postgres::Statement import_parked_key_;
  postgres::Statement erase_parked_keys_;
  postgres::Statement erase_letters_;
  postgres::Statement erase_skipped_;
  postgres::Statement count_letters_;
  postgres::Statement count_skipped_;
};

}  // namespace pawl::ledger
