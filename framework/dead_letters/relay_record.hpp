#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "dead_letters/store/view.hpp"
#include "kafka/producer.hpp"

namespace pawl::engine {

/// What of a letter a record in Kafka carries, where Kafka refuses the whole as too large.
enum class LetterSize {
  kWhole,
  kWithoutValue,
  kHeadersOfOurs,  ///< without key and original headers as well
};

/// A dead letter as a record of dead_letters.topic: key, value and headers of the message, and
/// behind them headers that say where it is from and why it died (docs/dead-letters.md lists them).
/// PostgreSQL's DETAIL is not among them. The letter outlives the object.
class DeadLetterRecord {
 public:
  DeadLetterRecord(const ledger::DeadLetter& letter, const std::string& group, LetterSize size);

  [[nodiscard]] kafka::Outgoing view() const;

 private:
  void add(const char* name, std::string value) { ours_.emplace_back(name, std::move(value)); }

  const ledger::DeadLetter& letter_;
  LetterSize size_;
  std::vector<std::pair<const char*, std::string>> ours_;
};

}  // namespace pawl::engine
