#pragma once

#include <string>
#include <vector>

#include "leases/store/key_leases.hpp"
#include "postgres/request.hpp"
#include "postgres/session.hpp"
#include "postgres/statement.hpp"

namespace pawl::ledger {

/// What PostgreSQL stores and says of calls, wherever their leases are kept. Holds statements only;
/// one instance serves all threads. Throws postgres::Error, and postgres::InDoubt where it commits.
class CallRecords {
 public:
  explicit CallRecords(const std::string& schema);

  /// What is known of a key for which somebody has taken a lease elsewhere.
  enum class Known {
    kNothing,   ///< it may be called
    kFinished,  ///< the key is processed
    kParked,    ///< the message must wait behind an earlier one of its record key
    kHeld,      ///< an attempt under a lease in PostgreSQL is not finished
    kBusy,      ///< a transaction records a call for it right now
  };
  /// Reads behind what was committed before. Raises where the request's fence is not the
  /// partition's any more.
  [[nodiscard]] Known check_before_call(postgres::Session& session,
                                        const LeaseRequest& request) const;

  /// KeyLeases::record(). `has_row`: the lease is a row of pawl.leases, which this ends.
  void record(postgres::Request& request, const KeyLease& lease, bool has_row,
              const LeaseSubject& subject, const Response& response,
              const std::string& durable_commit) const;

  void note_loss(postgres::Session& session, const KeyLease& lease, const LeaseSubject& subject,
                 std::uint32_t attempt, bool returned) const;

  /// Adds what the functions of both stores take last, the fence and the record key, and returns
  /// the statements that have to go before theirs, if there is a fence.
  [[nodiscard]] std::vector<postgres::Request> begin(postgres::Parameters& parameters,
                                                     const LeaseRequest& request) const;

 private:
  postgres::Statement hold_fence_;
  postgres::Statement require_predecessor_;
  postgres::Statement look_before_call_;
  postgres::Statement record_;
  postgres::Statement note_loss_;
};

// Parameters that several statements about leases take.
void add_lease(postgres::Parameters& parameters, const KeyLease& lease);
void add_message(postgres::Parameters& parameters, const LeaseSubject& subject);
void add_boolean(postgres::Parameters& parameters, bool value);
void add_response(postgres::Parameters& parameters, const Response& response);

}  // namespace pawl::ledger
