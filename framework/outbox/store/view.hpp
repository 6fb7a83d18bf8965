#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "ledger/instant.hpp"
#include "outbox/store/watch.hpp"
#include "postgres/session.hpp"
#include "postgres/statement.hpp"

namespace pawl::ledger {

/// Of one lane's messages. Counting millions takes the server longer than whoever looks waits.
inline constexpr std::int64_t kMostCounted = 100000;

/// Where a lane of the outbox stands.
struct LaneStatus {
  std::int32_t lane = 0;
  std::string owner;              ///< empty: nobody has it
  bool owner_late = false;        ///< it has not been extended in time
  std::int64_t waiting = 0;       ///< kMostCounted at most
  std::optional<Instant> oldest;  ///< since when the oldest message waits
  std::int64_t published = 0;     ///< since the lane was made
  std::optional<Instant> last_published;
  bool more = false;  ///< more wait than were counted
};

/// A process that publishes, or tries to.
struct RelayStatus {
  std::string owner;
  std::optional<bool> transactions = std::nullopt;  ///< its outbox.transactions, once it is told
  std::string problem = {};   ///< what ended its last try to publish; empty: none
  std::string left_out = {};  ///< topic partitions to which it cannot write now; empty: none
};

/// The outbox at one moment.
struct OutboxStatus {
  std::vector<LaneStatus> lanes;
  Instant now;                             ///< of the database's clock
  std::int64_t set_apart = 0;              ///< messages, without those that were given up
  std::chrono::milliseconds alert_age{0};  ///< of whoever looks; zero: none is late
  std::vector<RelayStatus> relays = {};    ///< those that have been heard of within a lease

  /// What was counted of all lanes; `more`: at least so many.
  [[nodiscard]] std::int64_t waiting() const;
  [[nodiscard]] bool more() const;
  [[nodiscard]] std::optional<Instant> oldest() const;
  /// A message waits for longer than alert_age.
  [[nodiscard]] bool late() const { return outbox_is_late(oldest(), now, alert_age); }
  /// Some process has a lane, and has extended it in time.
  [[nodiscard]] bool relayed() const;
};

/// A message that was set apart.
struct SetApart {
  std::int64_t id = 0;
  std::string topic;
  std::optional<std::string> key;
  std::optional<std::string> value;  ///< only where it was asked for
  std::string headers;               ///< JSON, as stored; empty: none
  std::string event_id;
  std::string status;
  std::string reason;
  Instant created;
  Instant failed;
  // Of those that were given up:
  std::optional<Instant> resolved = std::nullopt;
  std::string resolved_by = {};
  std::string resolution = {};
};

/// The outbox as operators see it. All throw postgres::Error.
class OutboxView {
 public:
  explicit OutboxView(const std::string& schema);

  OutboxStatus look(postgres::Session& session, std::chrono::milliseconds alert_age) const;
  std::vector<LaneStatus> lanes(postgres::Session& session) const;
  std::vector<RelayStatus> relays(postgres::Session& session) const;
  /// Whether a message waits, without counting them.
  bool any_waits(postgres::Session& session) const;
  /// One does, and no process has a lane that it has extended in time (OutboxStatus::relayed).
  bool is_left_alone(postgres::Session& session) const;
  /// The highest number of those that wait; 0: none does.
  std::int64_t last_waiting(postgres::Session& session) const;
  /// Whether a message of this number or a lower one waits.
  bool any_waits_up_to(postgres::Session& session, std::int64_t id) const;
  /// By their ids; `id` 0: all. Those that were given up only with `discarded`.
  std::vector<SetApart> set_apart(postgres::Session& session, std::int64_t id, bool discarded,
                                  std::int64_t most, bool with_values) const;
  /// Puts a message and those behind it back into the outbox. `discard` non-empty: gives the
  /// message itself up, for that reason. How many go back; nullopt: no such message waits. May also
  /// throw postgres::InDoubt.
  std::optional<std::int64_t> retry(postgres::Session& session, std::int64_t id,
                                    const std::string& discard) const;

 private:
  postgres::Statement lanes_;
  postgres::Statement relays_;
  postgres::Statement any_;
  postgres::Statement left_alone_;
  postgres::Statement last_;
  postgres::Statement any_up_to_;
  postgres::Statement now_;
  postgres::Statement set_apart_;
  postgres::Statement count_;
  postgres::Statement retry_;
};

}  // namespace pawl::ledger
