#pragma once

#include <chrono>

#include "engine/bell.hpp"
#include "pawl/options.hpp"
#include "postgres/session.hpp"

namespace pawl::engine {

/// The sessions of whoever has to do with the outbox; `bell`, which ends what waits for an answer,
/// outlives them.
[[nodiscard]] postgres::SessionSettings outbox_session(const Options& options, const Bell& bell);
/// With times of their own: for a lock at most, and for a statement.
[[nodiscard]] postgres::SessionSettings outbox_session(const Options& options, const Bell& bell,
                                                       std::chrono::milliseconds longest_lock,
                                                       std::chrono::milliseconds statement);

}  // namespace pawl::engine
