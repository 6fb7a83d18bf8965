#pragma once

#include <chrono>
#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "dead_letters/store/view.hpp"
#include "ledger/lease.hpp"
#include "ledger/types.hpp"
#include "postgres/session.hpp"
#include "postgres/statement.hpp"

namespace pawl::ledger {

/// Dead letters on their way into a Kafka topic (migrations/0004_dead_letters.sql): which are
/// still to be sent, and that they were. Only unresolved ones are sent. All statements throw
/// postgres::Error or postgres::InDoubt; all may be repeated. Any thread.
class DeadLetterFeed {
 public:
  using Ids = std::set<std::int64_t>;

  DeadLetterFeed(const std::string& schema, ConsumerId consumer);

  /// Whether a letter waits that is none of `except`.
  [[nodiscard]] bool waiting(postgres::Session& session, const Ids& except) const;

  /// The right to send for this consumer.
  [[nodiscard]] const Lease& lease() const { return lease_; }

  /// The next letters that wait, with an id greater than `after` and none of `except`, in the order
  /// of their ids: up to `most`, or as many as hold `bytes` of values, but at least one. died_at
  /// has milliseconds; what a record in Kafka does not carry is not filled.
  [[nodiscard]] std::vector<DeadLetter> next(postgres::Session& session, std::int64_t after,
                                             const Ids& except, std::int64_t most,
                                             std::size_t bytes) const;

  /// Stores that they were sent. Returns those that somebody else has locked just now (a replay):
  /// mark them later.
  [[nodiscard]] Ids mark(postgres::Session& session, const Ids& sent) const;

 private:
  ConsumerId consumer_;
  postgres::Statement waiting_;
  Lease lease_;
  postgres::Statement next_;
  postgres::Statement mark_;
};

}  // namespace pawl::ledger
