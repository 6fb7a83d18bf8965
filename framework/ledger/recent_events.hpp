#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "ledger/types.hpp"
#include "postgres/session.hpp"
#include "postgres/statement.hpp"

namespace pawl::ledger {

/// What the database keeps of a message that was not applied, or of a change of a partition.
struct RecentEvent {
  enum class Kind {
    kDeadLetter,  ///< `what`: its status; `id`: its number
    kSkipped,     ///< `what`: "skipped"
    kChange,      ///< pawl.offset_history; `what`: the action
  };

  Kind kind = Kind::kChange;
  std::int64_t id = 0;
  TopicPartition partition;
  std::optional<std::int64_t> offset;  ///< of the message; of a change: the next one after it
  std::optional<std::int64_t> from;    ///< of a change: the next offset before it
  std::string what;
  std::string handler;       ///< of a dead letter
  std::string reason;        ///< of a dead letter: the word; empty: none was given
  std::string error;         ///< of a dead letter
  std::string statement;     ///< of a dead letter; empty: no statement of its handler failed
  std::string sqlstate;      ///< of a dead letter; empty: PostgreSQL did not report the error
  std::int64_t retries = 0;  ///< of a dead letter: delayed retries so far
  std::string due_at;        ///< of a dead letter that is retried at this time: RFC 3339, UTC
  std::string actor;         ///< the database's role; of a dead letter empty
  std::string at;            ///< RFC 3339, UTC
};

/// What is new of these since the last look. One thread.
class RecentEvents {
 public:
  /// Whether the first look finds nothing, and is where all others begin, or finds all that is
  /// there, of a consumer that there was not before.
  enum class Begin { kNow, kWithAll };

  RecentEvents(const std::string& schema, ConsumerId consumer, Begin begin);

  /// By kind and number. Throws postgres::Error, postgres::InDoubt.
  [[nodiscard]] std::vector<RecentEvent> look(postgres::Session& session);

 private:
  struct Source {
    RecentEvent::Kind kind;
    postgres::Statement last;
    postgres::Statement since;
    std::int64_t highest = -1;    ///< -1: no look yet
    std::set<std::int64_t> seen;  ///< close to the highest
  };

  void look(postgres::Session& session, Source& source, std::vector<RecentEvent>& found) const;

  ConsumerId consumer_;
  std::vector<Source> sources_;
};

}  // namespace pawl::ledger
