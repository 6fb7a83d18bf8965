#pragma once

#include <chrono>
#include <map>
#include <string>
#include <vector>

#include "ledger/types.hpp"
#include "postgres/parameters.hpp"
#include "postgres/session.hpp"
#include "postgres/statement.hpp"

namespace pawl::ledger {

/// What happens to the messages of one topic, as digests: equal in two processes that do the same
/// with them.
struct Fingerprint {
  std::string handlers;    ///< which SQL, function or code, in their order
  std::string conditions;  ///< `when` of each, and what becomes of messages that match none
  std::string keys;        ///< key, scope, missing_key and conflict of each
  std::string policies;    ///< what becomes of messages that fail

  friend bool operator==(const Fingerprint&, const Fingerprint&) = default;
};

/// In which of these respects two differ, for people: "conditions, keys"; empty: in none.
[[nodiscard]] std::string difference(const Fingerprint& one, const Fingerprint& other);

/// What one live process does with one topic.
struct ProcessTopic {
  std::string topic;
  std::string owner;  ///< as in the register
  Fingerprint fingerprint;
};

/// A topic that live processes handle in different ways.
struct DifferingTopic {
  std::string topic;
  std::string difference;                        ///< as difference() says it, of all of them
  std::vector<std::vector<std::string>> owners;  ///< those that do the same together
};
/// Of rows that are sorted by topic.
[[nodiscard]] std::vector<DifferingTopic> differing_topics(const std::vector<ProcessTopic>& live);

/// A process that has told nothing for so long is gone.
inline constexpr std::chrono::seconds kLiveProcess{20};

/// pawl.processes: which processes of a consumer run now, also those without a partition, and what
/// they do with each topic. Each tells its own rows again and again, well within kLiveProcess. Only
/// for warnings: nothing else depends on it. One instance serves all threads.
class Processes {
 public:
  Processes(const std::string& schema, ConsumerId consumer, std::string owner);

  /// Stores, or makes young, this process' rows. Throws postgres::Error, postgres::InDoubt.
  void tell(postgres::Session& session,
            const std::map<std::string, Fingerprint>& fingerprints) const;
  /// Takes them away. Throws the same.
  void leave(postgres::Session& session) const;

 private:
  ConsumerId consumer_;
  std::string owner_;
  postgres::Statement tell_;
  postgres::Statement forget_;
  postgres::Statement leave_;
};

/// The rows of all live processes, by topic and owner.
[[nodiscard]] std::vector<ProcessTopic> live_processes(postgres::Session& session,
                                                       const std::string& schema,
                                                       ConsumerId consumer);

}  // namespace pawl::ledger
