#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "ledger/types.hpp"
#include "pawl/message.hpp"
#include "postgres/session.hpp"
#include "postgres/statement.hpp"

namespace pawl::ledger {

/// Whoever publishes and dies is replaced after this, and is known to live until then.
inline constexpr std::chrono::milliseconds kRelayLease{10000};

/// A lane of the outbox that was taken, and what its last batch was.
struct LaneGrant {
  std::int32_t lane = 0;
  std::int64_t epoch = 0;
  std::int64_t batch_number = 0;
  std::string batch_token;
  std::int64_t batch_rows = 0;  ///< 0: the batch has ended
};

/// A lane and the epoch under which it is held.
struct HeldLane {
  std::int32_t lane = 0;
  std::int64_t epoch = 0;

  friend bool operator==(const HeldLane&, const HeldLane&) = default;
};

/// The producer of a lane in Kafka.
struct LaneProducer {
  std::int64_t number = 0;  ///< of its transactional id
  /// No other producer of that id exists: the previous owner was alone, and gave the lane back
  /// after its own producer had ended.
  bool alone = false;
};

struct KeptLanes {
  std::vector<std::int32_t> held;
  /// How many more this owner may take; below zero, so many it should give back.
  std::int64_t room = 0;
  /// Other live processes whose outbox.transactions is another one, by commas; empty: none.
  std::string differing = {};
};

/// What a process that publishes tells the others, and operators.
struct RelayNews {
  bool transactions = true;   ///< its outbox.transactions
  std::string problem = {};   ///< what ended its last try to publish; empty: none
  std::string left_out = {};  ///< topic partitions to which it cannot write now; empty: none
};

/// A message of the outbox as it is to stand in Kafka.
struct OutboxRow {
  std::int64_t id = 0;
  std::string topic;
  std::optional<std::string> key;
  std::optional<std::string> value;
  std::string headers;  ///< JSON, as stored; empty: none
  std::string event_id;
  bool held = false;  ///< an earlier message of its key is set apart
};

struct OutboxPage {
  std::string seen;   ///< the snapshot in which the rows were read
  bool more = false;  ///< there are others than these
  std::vector<OutboxRow> rows;
};

/// The tables of the outbox (migrations/0006_outbox.sql), for whoever publishes from them. Every
/// change of a lane throws postgres::Error PW001 once another owner has it. Any thread; all throw
/// postgres::Error, and those that change something postgres::InDoubt.
class Outbox {
 public:
  using Ids = std::vector<std::int64_t>;

  explicit Outbox(const std::string& schema);

  /// Stores what pawl.publish may take.
  void set_max_message(postgres::Session& session, std::size_t bytes) const;

  KeptLanes keep(postgres::Session& session, const std::string& owner,
                 const std::vector<HeldLane>& lanes, std::chrono::milliseconds lease,
                 const RelayNews& news) const;
  std::optional<LaneGrant> take(postgres::Session& session, const std::string& owner,
                                std::chrono::milliseconds lease,
                                const std::string& kafka_cluster_id) const;
  /// `alone`: no producer of the lane's transactional id exists, this owner's included.
  void release(postgres::Session& session, const HeldLane& lane, bool alone) const;
  /// It publishes no more, so that others take its share at once.
  void leave(postgres::Session& session, const std::string& owner) const;
  /// Nullopt: the lane is not this owner's in the database of this session, which may be another
  /// one than that in which it was taken.
  std::optional<LaneProducer> producer(postgres::Session& session, const HeldLane& lane,
                                       const std::string& owner) const;
  /// The number of the lane's next transactional id; on disk when it returns. Only if no producer
  /// of the present one exists.
  std::int64_t renew_producer(postgres::Session& session, const HeldLane& lane) const;

  /// What transactions a statement sees now.
  std::string snapshot(postgres::Session& session) const;
  /// `after`: pages of what `since` saw, by their ids; without it what came after `since`.
  OutboxPage next(postgres::Session& session, std::int32_t lane, std::optional<std::int64_t> after,
                  const std::string& since, std::int64_t most, std::size_t bytes) const;
  /// On disk when it returns: rows are published only behind it.
  void begin_batch(postgres::Session& session, const HeldLane& lane, std::int64_t number,
                   const std::string& token, const Ids& ids) const;
  /// Kafka has them. May be lost with the database's last commits; the token tells it then again.
  void end_batch(postgres::Session& session, const HeldLane& lane, const std::string& token) const;
  /// Kafka does not have them, and never will: the next batch may hold others. May be lost as well.
  void abandon_batch(postgres::Session& session, const HeldLane& lane,
                     const std::string& token) const;
  /// Sets rows apart, with `status` "failed" or "waiting".
  void fail(postgres::Session& session, const HeldLane& lane, const Ids& ids,
            const std::string& status, const std::string& reason) const;

 private:
  postgres::Statement set_max_message_;
  postgres::Statement keep_;
  postgres::Statement tell_;
  postgres::Statement leave_;
  postgres::Statement take_;
  postgres::Statement release_;
  postgres::Statement producer_;
  postgres::Statement renew_;
  postgres::Statement snapshot_;
  postgres::Statement next_;
  postgres::Statement begin_;
  postgres::Statement end_;
  postgres::Statement abandon_;
  postgres::Statement fail_;
};

}  // namespace pawl::ledger
