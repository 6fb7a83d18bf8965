#pragma once

#include <string_view>

/// The Lua scripts of framework/leases/redis, each of which says what it takes and returns.
namespace pawl::ledger::redis_scripts {

extern const std::string_view kAcquire;
extern const std::string_view kExtend;
extern const std::string_view kRelease;
extern const std::string_view kComplete;
extern const std::string_view kFail;

}  // namespace pawl::ledger::redis_scripts
