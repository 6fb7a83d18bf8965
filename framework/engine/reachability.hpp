#pragma once

#include <mutex>
#include <optional>
#include <set>
#include <string>

#include "engine/observers.hpp"
#include "pawl/message.hpp"
#include "pawl/topic_partition.hpp"

namespace pawl::engine {

/// Whether a server that the consumer needs answers anybody in this process. Those who use it say
/// how that went; the observers get each change, and each new reason of an outage. With several
/// users, one success outweighs the others' failures: who has no connection while others
/// work is told as Step::kDatabaseDisconnected. Any thread.
class Reachability {
 public:
  /// The steps that tell the two changes.
  Reachability(const Observers& observers, Step lost, Step back)
      : observers_(observers), lost_(lost), back_(back) {}

  void answered();
  /// A question, or an attempt to connect, failed. `why` is for people.
  void failed(const std::string& why);
  /// A connection broke. If nobody is answered anyway, what failed() said last counts: it says how
  /// things are now, and this how they were when the connection broke.
  void lost(const std::string& why);

  /// As told last.
  [[nodiscard]] bool is_away() const;
  /// An outage that is in progress.
  struct Outage {
    Timestamp since;
    std::string why;  ///< the latest reason
  };
  [[nodiscard]] std::optional<Outage> outage() const;
  /// The latest reason why the server is unreachable; empty: it is reachable.
  [[nodiscard]] std::string problem() const;

  /// It answers, but has no room for what a partition has to store, until accepted(). No answer to
  /// anybody else says anything about that.
  void refused(const TopicPartition& partition, const std::string& why);
  void accepted(const TopicPartition& partition);

 private:
  void update(const std::string& why);
  void tell(Step step, const std::string& detail) const;

  const Observers& observers_;
  const Step lost_;
  const Step back_;
  mutable std::mutex mutex_;  ///< also keeps the order in which changes are told
  bool silent_ = false;
  std::set<TopicPartition> refused_;
  bool away_ = false;  ///< as told last
  Timestamp since_;    ///< of the outage
  std::string why_;    ///< likewise
};

/// Why a process is not ready if its `database` is away; empty: it is not away.
[[nodiscard]] std::string unready_without(const Reachability& database);

}  // namespace pawl::engine
