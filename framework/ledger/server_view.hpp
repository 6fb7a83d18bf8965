#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "ledger/types.hpp"
#include "postgres/session.hpp"

namespace pawl::ledger {

/// Something that keeps PostgreSQL from removing old row versions in this database, the register's
/// among them: an open transaction, a prepared one, or a replication slot.
struct HorizonHolder {
  std::string what;                   ///< session, standby, prepared transaction, replication slot
  std::string name;                   ///< pid, gid or the slot's name
  std::string user;                   ///< empty: a slot
  std::string application;            ///< application_name
  std::string state;                  ///< of a session: "idle in transaction"; empty: not shown
  std::int64_t transactions = 0;      ///< that began since
  std::optional<std::int64_t> since;  ///< seconds it has been open; nullopt: unknown or not shown
};

/// What the server tells about itself. Without pg_read_all_stats (pg_monitor) PostgreSQL shows of
/// other roles' sessions neither state nor times.
struct ServerView {
  std::int64_t now_ms = 0;  ///< the server's clock, since 1970
  bool sees_all = true;
  std::string role;                       ///< of this session, quoted as SQL needs it
  std::vector<HorizonHolder> holders;     ///< the worst first, at most five
  std::int64_t consumer_connections = 0;  ///< of this consumer's processes
  std::int64_t pawl_connections = 0;      ///< of all programs of pawl, this one included
  std::int64_t connections = 0;           ///< of everybody
  std::int64_t max_connections = 0;
  std::int64_t parked_keys = 0;  ///< record keys of this consumer with parked messages
  /// Of those, have neither a dead letter nor one that is tried again by itself.
  std::int64_t left_parked_keys = 0;
};

/// `consumer` nullopt: it has never run here. `group` names the sessions of its processes.
[[nodiscard]] ServerView look_at_server(postgres::Session& session, const std::string& schema,
                                        std::optional<ConsumerId> consumer,
                                        const std::string& group);

}  // namespace pawl::ledger
