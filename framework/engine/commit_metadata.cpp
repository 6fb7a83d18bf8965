#include "engine/commit_metadata.hpp"

#include <string_view>

namespace pawl::engine {
namespace {

constexpr std::string_view kOurs = "pawl:";

}  // namespace

std::string commit_metadata(const std::string& database_id) {
  return std::string(kOurs) + database_id;
}

std::optional<CommittedByPawl> committed_by_pawl(const kafka::Client& client,
                                                 const std::vector<TopicPartition>& partitions,
                                                 std::chrono::milliseconds timeout) {
  for (const auto& [partition, committed] : client.committed(partitions, timeout)) {
    if (committed.metadata.starts_with(kOurs))
      return CommittedByPawl{partition, committed.next, committed.metadata.substr(kOurs.size())};
  }
  return std::nullopt;
}

}  // namespace pawl::engine
