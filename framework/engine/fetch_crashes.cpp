#include "engine/fetch_crashes.hpp"

#include <algorithm>

namespace pawl::engine {

std::uint32_t fetch_crashes_before(const ledger::Acquired& acquired) {
  const auto& fetch = acquired.first_fetch;
  return fetch.offset == acquired.stored.next() ? fetch.crashes : 0;
}

std::uint32_t fetch_crashes(const ledger::Acquired& acquired, bool log_goes_on, bool ours) {
  const auto& fetch = acquired.first_fetch;
  const auto before = fetch_crashes_before(acquired);
  const bool running = acquired.state == ledger::PartitionState::kRunning;
  if (acquired.released || fetch.moved || ours || fetch.owner_lives || !running || !log_goes_on)
    return before;
  // From the second one on it is fetched alone, and its mark says exactly when.
  const bool in_fetch = before > 0 ? fetch.marked : !fetch.begun;
  return in_fetch ? before + 1 : before;
}

std::uint32_t most_fetch_crashes(const FailureOptions& options) {
  return std::max<std::uint32_t>(options.max_crashes, 2);
}

}  // namespace pawl::engine
