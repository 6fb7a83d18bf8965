#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "ledger/types.hpp"
#include "pawl/handler.hpp"
#include "postgres/request.hpp"
#include "postgres/session.hpp"
#include "postgres/statement.hpp"

namespace pawl::ledger {

/// One attempt's hold on an idempotency key.
struct KeyLease {
  ScopeId scope{};
  std::string key;
  std::string owner;       ///< the process
  std::int64_t token = 0;  ///< random, of this attempt
};

/// Of which message an attempt is.
struct LeaseSubject {
  std::int64_t payload_hash = 0;
  SourceId source{};
  std::int32_t partition = 0;
  std::int64_t offset = 0;
};

struct LeaseRequest {
  KeyLease lease;
  LeaseSubject subject;
  std::chrono::milliseconds time{};
  /// An unresolved attempt for another payload is no conflict.
  bool any_payload = false;
  /// Nothing is taken unless the partition still has this epoch.
  std::optional<Fence> fence = {};
  /// Nothing is taken while this record key is parked.
  std::optional<RecordKey> unless_parked = {};
};

struct LeaseAnswer {
  enum class How {
    kMine,
    kDone,      ///< mine, and known to be done: `response` is to be recorded
    kPending,   ///< another one has it
    kFinished,  ///< the key is processed
    kParked,    ///< the message must wait behind an earlier one of its record key
    kConflict,  ///< an attempt for another payload is unresolved
  };
  How how{};
  std::uint32_t attempt = 0;
  /// So long ago began the first attempt of which nobody knows whether it did anything.
  std::optional<std::chrono::milliseconds> unknown_for;
  Response response;
  std::string holder;                ///< kPending: who; kConflict: of which message
  std::chrono::milliseconds wait{};  ///< kPending: for how long yet, if it is not extended
};

/// How an attempt ended that was not recorded.
enum class GivenBack { kNotBegun, kNotDone, kUnknown, kDone };

enum class Extended {
  kExtended,
  kBusy,  ///< another transaction has the row; it is ours still
  kLost,
};

/// pawl.leases, what is held of it. The server's clock counts. Holds statements only; one instance
/// serves all threads. All of it throws postgres::Error, and postgres::InDoubt where it commits.
class KeyLeases {
 public:
  explicit KeyLeases(const std::string& schema);

  /// Durable when it returns.
  [[nodiscard]] LeaseAnswer acquire(postgres::Session& session, const LeaseRequest& request) const;

  /// For `time` from now on, each by itself; durable.
  [[nodiscard]] std::vector<Extended> extend(postgres::Session& session, const std::string& owner,
                                             const std::vector<KeyLease>& leases,
                                             std::chrono::milliseconds time) const;

  /// The first statement of the transaction that records a call: ends the lease and claims the key.
  /// Raises PW015 when the lease is another's. IdempotencyKeys::claimed_by() reads the answer.
  /// `durable_commit`: the transaction's synchronous_commit; empty: the session's.
  void record(postgres::Request& request, const KeyLease& lease, const LeaseSubject& subject,
              const Response& response, const std::string& durable_commit) const;

  /// `settled`: what earlier attempts did is known too, to be nothing. False: the lease is not ours
  /// any more. Durable; may be repeated.
  bool give_back(postgres::Session& session, const KeyLease& lease, GivenBack how, bool settled,
                 const Response& response) const;

  /// Stores that the lease was lost while its call ran. `returned`: it returned an outcome.
  void note_loss(postgres::Session& session, const KeyLease& lease, const LeaseSubject& subject,
                 std::uint32_t attempt, bool returned) const;

 private:
  postgres::Statement hold_fence_;
  postgres::Statement acquire_;
  postgres::Statement extend_;
  postgres::Statement record_;
  postgres::Statement give_back_;
  postgres::Statement note_loss_;
};

}  // namespace pawl::ledger
