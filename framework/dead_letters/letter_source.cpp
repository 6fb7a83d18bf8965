#include "dead_letters/letter_source.hpp"

#include "kafka/fetch_one.hpp"
#include "message/message_digest.hpp"

namespace pawl::engine {
namespace {

constexpr std::chrono::milliseconds kFetchTimeout{15000};

/// Not another message that has its offset now.
bool is_of(const ledger::DeadLetter& letter, const Message& message) {
  return letter.message_digest ? message::message_digest(message) == letter.message_digest
                               : message.timestamp() == letter.timestamp;
}

}  // namespace

std::optional<kafka::Record> LetterSource::operator()(const ledger::DeadLetter& letter) {
  if (!exists(letter.partition))
    return std::nullopt;
  try {
    auto record = kafka::fetch_one(client_(), letter.partition, letter.offset, kFetchTimeout);
    const bool same = record && record->offset() == letter.offset &&
                      is_of(letter, record->view(letter.partition.topic, ""));
    return same ? std::move(record) : std::nullopt;
  } catch (const kafka::KafkaError& error) {
    // Removed by retention, or the log was cut.
    if (error.kind() == kafka::ErrorKind::kPositionRefused)
      return std::nullopt;
    throw;
  }
}

/// Asked before: who reads from a topic that is gone waits for nothing until the time is over.
bool LetterSource::exists(const TopicPartition& partition) {
  auto& known = partitions_[partition.topic];
  if (partition.partition >= known) {
    const auto described = client_().describe({partition.topic}, kafka::kAnswerTimeout);
    const auto found = described.find(partition.topic);
    known = found == described.end() ? 0 : found->second.partitions;
  }
  return partition.partition < known;
}

}  // namespace pawl::engine
