#pragma once

#include <cstdint>
#include <string>

namespace pawl::cli {

// Numbers for people.

/// 12345 as "12,345".
[[nodiscard]] std::string grouped(std::int64_t number);
/// "1 message", "12,345 messages".
[[nodiscard]] std::string counted(std::int64_t number, const char* one, const char* many);

}  // namespace pawl::cli
