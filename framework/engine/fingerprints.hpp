#pragma once

#include <map>
#include <string>

#include "ledger/processes.hpp"
#include "pawl/handler.hpp"
#include "pawl/options.hpp"

namespace pawl::engine {

/// What this program does with the messages of each topic. Of code only its name is known.
/// Timeouts, numbers of tries and how the work is arranged (pipeline, size of batches) are left
/// out: they change no effect.
[[nodiscard]] std::map<std::string, ledger::Fingerprint> fingerprints(const Options& options,
                                                                      const Registry& registry);

}  // namespace pawl::engine
