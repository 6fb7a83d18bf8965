#pragma once

#include <optional>
#include <string>

#include "handlers/router.hpp"
#include "leases/store/key_leases.hpp"
#include "pawl/message.hpp"

namespace pawl::engine {

/// What an attempt was about, as far as it had come when it failed.
struct Subject {
  const handlers::Binding* binding = nullptr;  ///< nullptr: no handler was found
  std::string key = {};                        ///< the idempotency key; may be empty
  bool handler_begun = false;
  /// Of a call that was given back.
  std::optional<ledger::KeyLease> lease = {};
};

/// What a message is, without running anything of the handler's: no key function either.
[[nodiscard]] Subject identify(const handlers::Router& router, const Message& message);

}  // namespace pawl::engine
