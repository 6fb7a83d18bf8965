#pragma once

#include <chrono>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <utility>

#include "engine/observers.hpp"
#include "engine/partition_status.hpp"
#include "ledger/process_conditions.hpp"
#include "ledger/processes.hpp"
#include "pawl/handler.hpp"
#include "pawl/options.hpp"
#include "postgres/session.hpp"

namespace pawl::engine {

/// Stores that this process runs, what it does with each topic, and what its messages wait for
/// (for `pawl status`). Warns once of each other process of the consumer that handles a topic in
/// another way, because the owner of a partition decides what happens to its messages. That is part
/// of a deployment, so it is a warning only, and over when one of the two ends. Owned by the
/// context; any worker calls it, over its own session.
class Presence {
 public:
  Presence(const Options& options, const Registry& registry, ledger::ConsumerId consumer,
           const std::string& owner, const Observers& observers, const StatusBoard& board);

  [[nodiscard]] ledger::ConsumerId consumer() const { return consumer_; }

  /// When it is due, and no other worker is at it; false: it is not. Throws postgres::Error,
  /// postgres::InDoubt.
  bool tell(postgres::Session& session);
  /// The process ends: from now on it tells nothing. Throws the same.
  void leave(postgres::Session& session);

 private:
  using Clock = std::chrono::steady_clock;

  void look(postgres::Session& session);
  void tell_conditions(postgres::Session& session);

  const std::string schema_;
  const ledger::ConsumerId consumer_;
  const std::string owner_;
  const std::map<std::string, ledger::Fingerprint> fingerprints_;
  const ledger::Processes processes_;
  const ledger::ProcessConditions conditions_;
  const Observers& observers_;
  const StatusBoard& board_;

  std::mutex mutex_;
  Clock::time_point due_;                                // guarded by mutex_
  bool left_ = false;                                    // guarded by mutex_
  bool has_conditions_ = false;                          // stored, perhaps; guarded by mutex_
  std::set<std::pair<std::string, std::string>> known_;  // topic, owner; guarded by mutex_
};

}  // namespace pawl::engine
