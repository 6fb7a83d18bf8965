#pragma once

#include <memory>

#include "leases/store/key_leases.hpp"
#include "pawl/options.hpp"

namespace pawl::engine {

/// Where the options say that leases are kept. Connects to nothing.
[[nodiscard]] std::shared_ptr<const ledger::KeyLeases> make_leases(const Options& options);

}  // namespace pawl::engine
