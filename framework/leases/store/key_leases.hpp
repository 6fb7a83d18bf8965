#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "ledger/types.hpp"
#include "pawl/handler.hpp"
#include "postgres/request.hpp"
#include "postgres/session.hpp"

namespace pawl::ledger {

/// One attempt's hold on an idempotency key.
struct KeyLease {
  Scope scope;
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

  friend bool operator==(const LeaseSubject&, const LeaseSubject&) = default;
};

struct LeaseRequest {
  KeyLease lease;
  /// Set by who is asked and throws: the lease may have been given, or be given yet, as the answer
  /// may be all that was lost. It is to be left to the process' keeper.
  bool may_be_given = false;
  LeaseSubject subject;
  std::string message;  ///< which one it is, for people
  std::chrono::milliseconds time{};
  /// An unresolved attempt for another payload is no conflict.
  bool any_payload = false;
  /// Nothing is taken unless the partition still has this epoch, and its stored offset is not
  /// behind.
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
    kHeld,      ///< an attempt of when leases were kept elsewhere is not finished
    kUnusable,  ///< Redis has another value under its name, which `holder` is
  };
  How how{};
  std::uint32_t attempt = 0;
  /// So long ago began the first attempt of which nobody knows whether it did anything.
  std::optional<std::chrono::milliseconds> unknown_for;
  /// So long ago began the last attempt before this one; nullopt: that is not known.
  std::optional<std::chrono::milliseconds> last_ago;
  Response response;
  std::string holder;                ///< kPending: who; kConflict: of which message
  std::chrono::milliseconds wait{};  ///< kPending: for how long yet, if it is not extended
};

/// How an attempt ended that was not recorded.
enum class GivenBack { kNotBegun, kNotDone, kUnknown, kDone };

/// A lease that was not given back by the attempt that had it or asked for it.
struct LeftLease {
  KeyLease lease;
  GivenBack how{};
  bool settled = false;
  Response response = {};
};

enum class Extended {
  kExtended,
  kBusy,  ///< another transaction has the row; it is ours still
  kLost,
};

/// Leases cannot be had or given back now. Nothing is lost by that, and it goes on by itself.
class LeasesAway : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Extends leases, and gives back those that were left, over a connection of its own, made when it
/// is needed. One thread.
class LeaseExtender {
 public:
  virtual ~LeaseExtender() = default;
  /// Each by itself, from now on for the time of leases; durable. Throws postgres::Error,
  /// postgres::InDoubt or LeasesAway, within a third of that time; may be repeated then.
  [[nodiscard]] virtual std::vector<Extended> extend(const std::vector<KeyLease>& leases) = 0;
  /// Waits for no lock. False: nothing of it is there, or a transaction has it; a request that is
  /// still on its way may give it later. Throws as extend() does; may be repeated.
  [[nodiscard]] virtual bool give_back(const LeftLease& left) = 0;
};

/// Where leases are kept, by the clock of a server. One instance serves all threads. What has a
/// session throws postgres::Error, and postgres::InDoubt where it commits; with leases elsewhere
/// also LeasesAway.
class KeyLeases {
 public:
  virtual ~KeyLeases() = default;

  /// Durable when it returns; may be repeated.
  [[nodiscard]] virtual LeaseAnswer acquire(postgres::Session& session,
                                            LeaseRequest& request) const = 0;

  /// The process that has the latest attempt of the key, while that is neither given back nor
  /// recorded; also if its lease has ended. Nullopt: there is none.
  [[nodiscard]] virtual std::optional<std::string> attempted_by(postgres::Session& session,
                                                                const Scope& scope,
                                                                const std::string& key) const = 0;

  /// `unwanted`: ends whatever it waits for.
  [[nodiscard]] virtual std::unique_ptr<LeaseExtender> make_extender(
      const std::atomic<bool>& unwanted) const = 0;

  /// The first statement of the transaction that records a call: ends the lease and claims the key.
  /// Raises PW015 when another one has done so. IdempotencyKeys::claimed_by() reads the answer.
  /// `durable_commit`: the transaction's synchronous_commit; empty: the session's.
  virtual void record(postgres::Request& request, const KeyLease& lease,
                      const LeaseSubject& subject, const Response& response,
                      const std::string& durable_commit) const = 0;
  /// Whether what a call brought is kept where it is given back as kDone; else the call is made
  /// again.
  [[nodiscard]] virtual bool keeps_responses() const = 0;
  /// That transaction is committed. False: the lease's own server could not be told, so the lease
  /// is to be left to the process' keeper.
  [[nodiscard]] virtual bool recorded(const KeyLease& lease) const noexcept = 0;

  /// `settled`: what earlier attempts did is known too, to be nothing. False: the lease is not ours
  /// any more. Durable; may be repeated.
  virtual bool give_back(postgres::Session& session, const KeyLease& lease, GivenBack how,
                         bool settled, const Response& response) const = 0;
  /// It was given back, and its message is a dead letter.
  virtual void set_aside(const KeyLease& lease) const noexcept = 0;

  /// Stores that the lease was lost while its call ran. `returned`: it returned an outcome.
  virtual void note_loss(postgres::Session& session, const KeyLease& lease,
                         const LeaseSubject& subject, std::uint32_t attempt,
                         bool returned) const = 0;
};

}  // namespace pawl::ledger
