#pragma once

#include <pawl/options.hpp>

#include <vector>

#include "config/problems.hpp"

namespace pawl::config {

/// Everything that is wrong with the options, whether they come from a file or from code: ranges,
/// names, what excludes or needs what, templates, conditions and statements. Empty: a consumer can
/// be built from them, or, with `may_only_relay` and only_relays(), the outbox relayed. Does no
/// I/O; what only Kafka or PostgreSQL can tell is `pawl check`'s.
[[nodiscard]] std::vector<Problem> validate(const Options& options, bool may_only_relay = false);

/// They are no consumer's: there is neither a group nor a handler.
[[nodiscard]] bool only_relays(const Options& options);

/// Throws ConfigErrors with all that validate() finds.
void require_valid(const Options& options);

}  // namespace pawl::config
