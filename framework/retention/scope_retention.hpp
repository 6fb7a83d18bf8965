#pragma once

#include "engine/key_retention.hpp"
#include "retention/store/retention.hpp"

namespace pawl::engine {

/// How long keys of a scope are kept: as long as any of its topics wants it. What this process'
/// handlers want says `own`; of other consumers' topics, and of those that this process has no
/// handler for, what was stored. `otherwise`: where nobody has said anything. Pure.
[[nodiscard]] milliseconds retention_of(const ledger::PrunableScope& scope,
                                        const KeyRetentions& own, milliseconds otherwise);

}  // namespace pawl::engine
