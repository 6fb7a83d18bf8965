#pragma once

#include <optional>
#include <string>

#include "handlers/router.hpp"
#include "message/json.hpp"
#include "pawl/message.hpp"

namespace pawl::engine {

/// What decides beside which other messages of its partition a message may begin.
struct MessageOrder {
  const handlers::Binding* binding = nullptr;  ///< nullptr: no handler's condition matches
  std::optional<std::string> key = {};         ///< nullopt: in any order
};
/// `together`: messages of the partition may run side by side; else all have one key.
[[nodiscard]] MessageOrder order_of(const handlers::Router& router, const Message& message,
                                    message::JsonView& json, bool together);

}  // namespace pawl::engine
