#include "ledger/other_consumers.hpp"

#include "ledger/rows.hpp"
#include "postgres/parameters.hpp"

namespace pawl::ledger {
namespace {

constexpr const char* kOthers = R"sql(
  SELECT c.cluster, c.group_id, r.partition, r.last_processed_offset
    FROM pawl.consumers c
    JOIN pawl.processed_kafka_offsets r USING (consumer_id)
   WHERE (c.cluster, c.group_id) IS DISTINCT FROM ($1, $2)
     AND c.kafka_cluster_id = $3 AND r.topic = $4
     AND ($5 = '' OR coalesce(r.topic_id, $5) = $5)
   ORDER BY c.cluster, c.group_id, r.partition
)sql";

}  // namespace

std::vector<OtherConsumer> other_consumers(postgres::Session& session, const std::string& schema,
                                           const SharedTopic& topic) {
  postgres::Parameters parameters;
  parameters.add_text(topic.cluster);
  parameters.add_text(topic.group);
  parameters.add_text(topic.kafka_cluster_id);
  parameters.add_text(topic.topic);
  parameters.add_text(topic.topic_id);
  const auto found = session.exec({"", in_schema(kOthers, schema)}, parameters);
  const auto* rows = found.get();
  std::vector<OtherConsumer> others;
  for (int row = 0; row < PQntuples(rows); ++row) {
    auto cluster = text(rows, row, 0);
    auto group = text(rows, row, 1);
    if (others.empty() || others.back().cluster != cluster || others.back().group != group)
      others.push_back({std::move(cluster), std::move(group), {}});
    others.back().stored[static_cast<std::int32_t>(integer(rows, row, 2))] = integer(rows, row, 3);
  }
  return others;
}

}  // namespace pawl::ledger
