#include "kafka/refused_positions.hpp"

#include <fmt/format.h>

#include <set>
#include <thread>
#include <vector>

#include "kafka/record.hpp"
#include "message/partition_name.hpp"

namespace pawl::kafka {
namespace {

using Clock = std::chrono::steady_clock;

/// Positions asked for at once: each may bring some records of its partition.
constexpr std::size_t kAtOnce = 50;
constexpr std::chrono::milliseconds kSeekAgain{20};

/// Assigned as long as it lives: librdkafka does not end with an assignment left.
class Questions {
 public:
  Questions(rd_kafka_t* client, const std::map<TopicPartition, LogPosition>& positions,
            std::chrono::milliseconds patience)
      : client_(client), deadline_(Clock::now() + patience), list_(new_list()) {
    for (const auto& [partition, position] : positions) {
      auto* entry = rd_kafka_topic_partition_list_add(list_.get(), partition.topic.c_str(),
                                                      partition.partition);
      entry->offset = position.offset;
      if (position.leader_epoch)
        rd_kafka_topic_partition_set_leader_epoch(entry, *position.leader_epoch);
      open_.insert(partition);
    }
    check(rd_kafka_assign(client_, list_.get()), "assigning");
  }
  ~Questions() { rd_kafka_assign(client_, nullptr); }
  Questions(const Questions&) = delete;
  Questions& operator=(const Questions&) = delete;

  std::map<TopicPartition, std::string> answers() {
    // Only a seek compares leader epochs. What was fetched before it is dropped by librdkafka.
    while (!sought()) {
      require_time("accept the position");
      std::this_thread::sleep_for(kSeekAgain);
    }
    std::map<TopicPartition, std::string> refused;
    while (!open_.empty()) {
      require_time("respond");
      const MessageHandle message(rd_kafka_consumer_poll(client_, 100));
      if (!message || message->rkt == nullptr)
        continue;
      const TopicPartition partition{rd_kafka_topic_name(message->rkt), message->partition};
      const Record record(*message);
      const bool error = record.kind() == Record::Kind::kError;
      const auto kind = record.error_kind();
      if (error && kind != ErrorKind::kPositionRefused && kind != ErrorKind::kUnreadable)
        continue;
      if (error && kind == ErrorKind::kPositionRefused)
        refused.emplace(partition, record.error_text());
      open_.erase(partition);
    }
    return refused;
  }

 private:
  static void check(rd_kafka_resp_err_t code, const char* what) {
    if (code != RD_KAFKA_RESP_ERR_NO_ERROR)
      throw KafkaError(code, fmt::format("{}: {}", what, rd_kafka_err2str(code)));
  }
  void require_time(const char* what) const {
    if (Clock::now() < deadline_)
      return;
    throw KafkaError(
        RD_KAFKA_RESP_ERR__TIMED_OUT,
        fmt::format("Kafka did not {} for {} in time", what, message::name_of(*open_.begin())));
  }
  /// A fetcher that is starting takes no seek yet.
  bool sought() {
    const ErrorHandle error(rd_kafka_seek_partitions(client_, list_.get(), 3000));
    bool all = !error;
    for (int i = 0; i < list_->cnt; ++i) {
      auto& entry = list_->elems[i];
      all = all && entry.err == RD_KAFKA_RESP_ERR_NO_ERROR;
      entry.err = RD_KAFKA_RESP_ERR_NO_ERROR;
    }
    return all;
  }

  rd_kafka_t* client_;
  Clock::time_point deadline_;
  ListHandle list_;
  std::set<TopicPartition> open_;
};

}  // namespace

std::map<TopicPartition, std::string> refused_positions(
    const Client& client, const std::map<TopicPartition, LogPosition>& positions,
    std::chrono::milliseconds patience) {
  std::map<TopicPartition, std::string> refused;
  for (auto next = positions.begin(); next != positions.end();) {
    std::map<TopicPartition, LogPosition> some;
    for (; next != positions.end() && some.size() < kAtOnce; ++next)
      some.insert(*next);
    refused.merge(Questions(client.raw(), some, patience).answers());
  }
  return refused;
}

}  // namespace pawl::kafka
