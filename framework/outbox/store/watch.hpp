#pragma once

#include <chrono>
#include <optional>
#include <string>

#include "ledger/instant.hpp"
#include "postgres/session.hpp"
#include "postgres/statement.hpp"

namespace pawl::ledger {

/// Whether a message that waits since `oldest` waits for longer than outbox.alert_age. Zero: no
/// message does.
[[nodiscard]] bool outbox_is_late(const std::optional<Instant>& oldest, Instant now,
                                  std::chrono::milliseconds alert_age);

/// How it was told that messages of the outbox wait for too long; nothing: it was not, or that they
/// no longer do was told too.
enum class LateTold { kNothing, kLogged, kAlerted };

/// One look at how long messages wait.
struct OutboxLook {
  LateTold told = LateTold::kNothing;
  std::optional<Instant> oldest;  ///< since when; nullopt: none waits
  Instant at;                     ///< of the database's clock
  bool relayed = false;           ///< some process has a lane, and has extended it in time
};

/// Who looks, for all processes of a database, how long messages wait
/// (migrations/0006_outbox.sql). Both throw postgres::Error and postgres::InDoubt; may be
/// repeated.
class OutboxWatch {
 public:
  explicit OutboxWatch(const std::string& schema);

  /// Looks, unless another process does. `alerts`: whether this one can tell more people than its
  /// log.
  [[nodiscard]] std::optional<OutboxLook> look(postgres::Session& session,
                                               const std::string& holder, bool alerts,
                                               std::chrono::milliseconds lease) const;
  /// Stores what was told; on disk when it returns, since a crash takes back no alert.
  void tell(postgres::Session& session, const std::string& holder, LateTold told) const;

 private:
  postgres::Statement look_;
  postgres::Statement tell_;
};

}  // namespace pawl::ledger
