#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace pawl::message {

/// What is to be said of a value in Confluent's wire format, with the id of its schema. The format
/// is a zero byte, the id in four bytes, the most significant first, and the data. Nullopt: the
/// value has another format. Schema registries count ids from 1, as positive 32-bit integers.
[[nodiscard]] std::optional<std::string> confluent_schema(std::string_view value);

}  // namespace pawl::message
