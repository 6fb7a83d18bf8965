#pragma once

#include <optional>
#include <string>

#include "message/template.hpp"

namespace pawl::message {

/// What in a key template looks like the ID of an entity that many events concern (a customer, an
/// account, the record key) and not of one event: later events would be taken for duplicates.
/// Nullopt: nothing, or something beside it may tell events apart. A guess by names, for a warning:
/// it says nothing wherever a name is unknown to it.
[[nodiscard]] std::optional<std::string> entity_in_key(const Template& key);

}  // namespace pawl::message
