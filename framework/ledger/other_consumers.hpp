#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "postgres/session.hpp"

namespace pawl::ledger {

/// Another consumer of this database that processes a topic.
struct OtherConsumer {
  std::string cluster;
  std::string group;
  std::map<std::int32_t, std::int64_t> stored;  ///< the last processed offset, by partition

  /// "cluster/group", as known_consumers names it.
  [[nodiscard]] std::string name() const { return cluster + "/" + group; }
};

/// Which topic of which Kafka cluster, and who asks.
struct SharedTopic {
  std::string cluster;  ///< our name for the Kafka cluster
  std::string group;
  std::string kafka_cluster_id;
  std::string topic;
  std::string topic_id;  ///< empty: unknown
};

/// All other consumers that have met the very topic, under whatever name of its Kafka cluster; one
/// that processed a topic of that name which was deleted since is left out. By cluster and group.
/// Throws postgres::Error.
[[nodiscard]] std::vector<OtherConsumer> other_consumers(postgres::Session& session,
                                                         const std::string& schema,
                                                         const SharedTopic& topic);

}  // namespace pawl::ledger
