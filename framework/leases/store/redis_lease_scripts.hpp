#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "leases/store/key_leases.hpp"
#include "redis/connection.hpp"
#include "redis/script.hpp"

namespace pawl::ledger {

struct RedisLeaseRequest {
  KeyLease lease;
  std::int64_t payload_hash = 0;
  std::string message;               ///< of which one it is, for people: "payments[0]@17"
  std::chrono::milliseconds time{};  ///< of the lease
  /// An unresolved attempt for another payload is no conflict.
  bool any_payload = false;
  /// The history may say COMPLETED: PostgreSQL was asked, and says no.
  bool force = false;
};

struct RedisLeaseAnswer {
  enum class How {
    kMine,
    kPending,    ///< another one has it
    kCompleted,  ///< the history says so: PostgreSQL knows whether it is true
    kConflict,   ///< an attempt for another payload is unresolved
  };
  How how{};
  std::uint32_t attempt = 0;
  /// So long ago began the first attempt of which nobody knows whether it did anything.
  std::optional<std::chrono::milliseconds> unknown_for;
  std::string holder;                ///< kPending: who; kConflict: of which message
  std::chrono::milliseconds wait{};  ///< kPending: for how long yet, if it is not extended
};

/// Leases of idempotency keys in Redis (docs/external-calls-redis.md). Its clock counts. What is
/// said here is never later than what PostgreSQL has committed, and may be missing: PostgreSQL's
/// key decides. Holds names and scripts only; one instance serves all threads. All of it throws
/// redis::Error, and everything may be repeated after one.
class RedisLeaseScripts {
 public:
  /// `prefix`: of all keys. `database`: tells PostgreSQL databases apart that share a Redis.
  RedisLeaseScripts(std::string prefix, std::string database);

  /// `history`: how long an attempt is remembered from its last sign of life on; zero: for ever.
  [[nodiscard]] RedisLeaseAnswer acquire(redis::Connection& connection,
                                         const RedisLeaseRequest& request,
                                         std::chrono::milliseconds history) const;

  /// The process whose attempt the history says is not ended; nullopt: there is none.
  [[nodiscard]] std::optional<std::string> attempted_by(redis::Connection& connection,
                                                        ScopeId scope,
                                                        const std::string& key) const;

  /// For `time` from now on, each by itself, all in one round trip. Never kBusy.
  [[nodiscard]] std::vector<Extended> extend(redis::Connection& connection,
                                             const std::vector<KeyLease>& leases,
                                             std::chrono::milliseconds time) const;

  /// The attempt has ended and is not recorded. `settled`: what earlier attempts did is known too,
  /// to be nothing. kDone is unknown here, for responses are not kept in Redis. False, here and
  /// below: the lease is not ours any more.
  bool give_back(redis::Connection& connection, const KeyLease& lease, GivenBack how, bool settled,
                 std::chrono::milliseconds history) const;

  /// The same of one that was left: false also while nothing is known of its key.
  bool give_back_left(redis::Connection& connection, const LeftLease& left,
                      std::chrono::milliseconds history) const;

  /// Its outcome is recorded; only after the COMMIT.
  bool complete(redis::Connection& connection, const KeyLease& lease,
                std::chrono::milliseconds history) const;

  /// Its message is a dead letter.
  bool fail(redis::Connection& connection, const KeyLease& lease,
            std::chrono::milliseconds history) const;

  /// The names of a key's two Redis keys.
  [[nodiscard]] std::string holder_name(ScopeId scope, const std::string& key) const;
  [[nodiscard]] std::string history_name(ScopeId scope, const std::string& key) const;

 private:
  [[nodiscard]] std::string common_name(ScopeId scope, const std::string& key) const;
  [[nodiscard]] redis::ScriptCall call(const KeyLease& lease, std::vector<std::string> more) const;

  const std::string prefix_;
  const std::string database_;
  const redis::Script acquire_;
  const redis::Script extend_;
  const redis::Script release_;
  const redis::Script complete_;
  const redis::Script fail_;
};

}  // namespace pawl::ledger
