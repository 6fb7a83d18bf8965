#include "dead_letters/relay_record.hpp"
#include "message/timestamp.hpp"

namespace pawl::engine {

DeadLetterRecord::DeadLetterRecord(const ledger::DeadLetter& letter, const std::string& group,
                                   LetterSize size)
    : letter_(letter), size_(size) {
  add("pawl-dead-letter-id", std::to_string(letter.id));
  add("pawl-topic", letter.partition.topic);
  add("pawl-partition", std::to_string(letter.partition.partition));
  add("pawl-offset", std::to_string(letter.offset));
  if (letter.timestamp)
    add("pawl-timestamp", std::to_string(message::milliseconds_of(letter.timestamp)));
  add("pawl-group", group);
  add("pawl-handler", letter.handler);
  add("pawl-status", letter.status);
  add("pawl-reason", letter.reason);
  if (!letter.sqlstate.empty())
    add("pawl-sqlstate", letter.sqlstate);
  if (!letter.statement.empty())
    add("pawl-statement", letter.statement);
  add("pawl-error", letter.error);
  add("pawl-attempts", std::to_string(letter.attempts));
  add("pawl-failed-at", letter.died_at);
  if (letter.headers_unknown)
    add("pawl-headers", "unknown");
  add("pawl-payload", size == LetterSize::kWhole ? letter.payload : "omitted");
}

kafka::Outgoing DeadLetterRecord::view() const {
  kafka::Outgoing record;
  if (size_ != LetterSize::kHeadersOfOurs) {
    record.key = letter_.record_key;
    for (const auto& header : letter_.headers)
      record.headers.push_back({header.name, header.value});
  }
  if (size_ == LetterSize::kWhole)
    record.value = letter_.record_value;
  for (const auto& [name, value] : ours_)
    record.headers.push_back({name, value});
  return record;
}

}  // namespace pawl::engine
