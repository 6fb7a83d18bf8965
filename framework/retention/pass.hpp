#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "engine/key_retention.hpp"
#include "kafka/client.hpp"
#include "pawl/options.hpp"
#include "postgres/session.hpp"
#include "retention/store/old_records.hpp"
#include "retention/store/retention.hpp"

namespace pawl::engine {

/// What one pass did, or would do, to one scope.
struct ScopeRetention {
  ledger::PrunableScope scope;  ///< as it was before
  ledger::Cutoff cutoff;
  milliseconds kept{0};  ///< how long keys are kept; zero: for ever
  bool swept = false;    ///< it was, or would be, part of this pass' sweep
};

struct RetentionReport {
  /// Another process of the group is at it; nothing else is said then.
  bool busy = false;
  /// Asked to stop, or another process took over; the next pass does the rest.
  bool interrupted = false;
  ledger::Instant at;         ///< the database's time when the pass began
  std::string kafka_problem;  ///< why the logs' ends are unknown; empty: they are known
  std::vector<ScopeRetention> scopes;
  std::int64_t keys = 0;
  bool keys_estimated = false;  ///< by a dry run, of a large table
  std::int64_t letters = 0;
  std::int64_t skipped = 0;
  std::int64_t discarded = 0;  ///< messages of the outbox that were given up
  std::int64_t losses = 0;     ///< records of calls that lost their lease
};

/// How thoroughly a pass works.
enum class PassMode {
  kDryRun,   ///< count what would go
  kWhenDue,  ///< sweep the keys only when a tenth of the retention has come together
  kAlways,   ///< sweep the keys in any case
};

/// One pass of retention over what a consumer stores; the same for `pawl prune` and a running
/// consumer. Safe beside running consumers and other passes, may be killed at any point, and is
/// repeated from the start (docs/retention.md). One thread at a time.
class RetentionPass {
 public:
  /// Waits; false: stop. Called between transactions, so that stopping is prompt.
  using Pause = std::function<bool(std::chrono::milliseconds)>;

  /// `holder` names this process. `older_than`: instead of what this consumer wants; what
  /// others want who share their scopes holds all the same. The references outlive the object.
  RetentionPass(const Options& options, ledger::ConsumerId consumer, const kafka::Client& kafka,
                std::string holder, Pause pause,
                std::optional<milliseconds> older_than = std::nullopt);

  /// Throws postgres::Error, postgres::InDoubt (repeat it), or FatalError when the server is too
  /// old.
  RetentionReport run(postgres::Session& session, PassMode mode);

 private:
  using Clock = std::chrono::steady_clock;

  struct Aging {
    milliseconds kept;  ///< zero: for ever
    std::int64_t RetentionReport::* count;
    ledger::OldRecords records;
  };

  void prune(postgres::Session& session, PassMode mode, RetentionReport& report);
  void find_topics(postgres::Session& session);
  std::map<std::string, std::string> register_uses(postgres::Session& session) const;
  std::vector<ledger::KnownEnd> ask_ends(postgres::Session& session, RetentionReport& report) const;
  std::map<ledger::ScopeId, ledger::Instant> cutoffs(postgres::Session& session, PassMode mode,
                                                     RetentionReport& report) const;
  [[nodiscard]] KeyRetentions in_force(const std::vector<ledger::PrunableScope>& scopes) const;
  void sweep(postgres::Session& session, const std::map<ledger::ScopeId, ledger::Instant>& cutoffs,
             RetentionReport& report);
  void remove_records(postgres::Session& session, RetentionReport& report);
  bool keep_lease(postgres::Session& session);
  bool rest(Clock::duration worked);

  const Options& options_;
  const ledger::ConsumerId consumer_;
  const kafka::Client& kafka_;
  ledger::Retention retention_;
  std::vector<Aging> records_;
  std::string holder_;
  Pause pause_;
  std::optional<milliseconds> older_than_;
  KeyRetentions configured_;
  Clock::time_point lease_due_;
};

/// What to say of Cutoff::unusable_time.
[[nodiscard]] std::string unusable_time_text(const std::string& partition);

/// "12 keys, 1 resolved dead letters, ...": what it removed, or would.
[[nodiscard]] std::string removed_text(const RetentionReport& report);

/// The session settings of a pass: it never waits long for a lock.
[[nodiscard]] postgres::SessionSettings pruning_settings(const Options& options);

}  // namespace pawl::engine
