#pragma once

#include "postgres/sqlstate.hpp"

namespace pawl::engine {

/// The transaction that records what a call brought has failed.
struct FailedRecord {
  bool session_alive = true;
  bool lease_lost = false;  ///< the record was refused since the lease is another's
  postgres::FailureClass failure{};
  bool handler_begun = false;   ///< the handler's own `record` ran in it
  bool keeps_responses = true;  ///< a lease that is given back keeps what the call brought
};

/// What follows. The call is never made again because of it, as far as anything can keep what it
/// brought.
enum class AfterRecord {
  kRepeat,    ///< the call is kept, and recorded again
  kLost,      ///< another attempt may have been made: it is told, and nothing is stored
  kUnplaced,  ///< the message is another owner's: recorded without a place, to meet a duplicate
  kTaken,     ///< the handler ended the transaction: all of it may be stored, or nothing; the lease
              ///< is given back with what the call brought, and no loss where it is gone
  kGivenBack,  ///< with what the call brought, for the next attempt
};
[[nodiscard]] AfterRecord after_record(const FailedRecord& record);

}  // namespace pawl::engine
