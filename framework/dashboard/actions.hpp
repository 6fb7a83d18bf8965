#pragma once

#include <string>

#include "dashboard/html.hpp"
#include "dashboard/replays.hpp"
#include "ledger/types.hpp"
#include "pawl/options.hpp"
#include "postgres/session.hpp"

namespace pawl::dashboard {

/// "by anna (dashboard): the account is there now": what the history keeps as the reason. The role
/// of the session, which the database knows by itself, stands beside it.
[[nodiscard]] std::string history_reason(const std::string& actor, const std::string& reason);

/// Resumes, pauses or skips, as `do` of the form says and only in the state in which whoever sent
/// it has seen the partition. Throws what the commands throw.
Outcome act_on_partition(postgres::Session& session, const Options& options, const Fields& form,
                         const std::string& reason);

/// Replays or discards. A replay that takes longer than a page waits goes on.
Outcome act_on_letter(postgres::Session& session, const Options& options, Replays& replays,
                      const Fields& form, const std::string& reason);

}  // namespace pawl::dashboard
