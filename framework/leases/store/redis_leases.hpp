#pragma once

#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "leases/store/call_records.hpp"
#include "leases/store/key_leases.hpp"
#include "leases/store/redis_lease_scripts.hpp"
#include "redis/pool.hpp"
#include "redis/settings.hpp"

namespace pawl::ledger {

/// Leases in Redis (docs/external-calls-redis.md). Keys and outcomes are PostgreSQL's: it is asked
/// behind the lease and before the call, and told of by Redis only what it has committed.
class RedisLeases final : public KeyLeases {
 public:
  struct Settings {
    redis::Settings server;
    std::string prefix;                   ///< of all keys
    std::chrono::milliseconds time{};     ///< of leases
    std::chrono::milliseconds history{};  ///< an attempt is remembered so long; zero: for ever
  };
  RedisLeases(const std::string& schema, Settings settings);

  [[nodiscard]] LeaseAnswer acquire(postgres::Session& session,
                                    LeaseRequest& request) const override;
  [[nodiscard]] std::optional<std::string> attempted_by(postgres::Session& session,
                                                        const Scope& scope,
                                                        const std::string& key) const override;
  [[nodiscard]] std::unique_ptr<LeaseExtender> make_extender(
      const std::atomic<bool>& unwanted) const override;
  void record(postgres::Request& request, const KeyLease& lease, const LeaseSubject& subject,
              const Response& response, const std::string& durable_commit) const override;
  [[nodiscard]] bool keeps_responses() const override { return false; }
  [[nodiscard]] bool recorded(const KeyLease& lease) const noexcept override;
  bool give_back(postgres::Session& session, const KeyLease& lease, GivenBack how, bool settled,
                 const Response& response) const override;
  void set_aside(const KeyLease& lease) const noexcept override;
  void note_loss(postgres::Session& session, const KeyLease& lease, const LeaseSubject& subject,
                 std::uint32_t attempt, bool returned) const override;

 private:
  class Extender;

  [[nodiscard]] std::shared_ptr<const RedisLeaseScripts> known_scripts() const;
  [[nodiscard]] std::shared_ptr<const RedisLeaseScripts> scripts(postgres::Session& session) const;
  [[nodiscard]] LeaseAnswer ask(postgres::Session& session, const RedisLeaseScripts& scripts,
                                LeaseRequest& request) const;
  template <typename Tell>
  std::optional<bool> tell(Tell tell) const noexcept;

  const Settings settings_;
  const std::string schema_;
  const CallRecords records_;
  const std::unique_ptr<redis::Pool> pool_;
  mutable std::mutex mutex_;
  mutable std::shared_ptr<const RedisLeaseScripts> scripts_;  // guarded by mutex_
  /// Until then Redis is told nothing: it did not answer.
  mutable std::atomic<std::chrono::steady_clock::rep> silent_until_{0};
};

}  // namespace pawl::ledger
