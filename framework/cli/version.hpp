#pragma once

#include <string>

namespace pawl::cli {

/// pawl's own version: "0.1.0".
[[nodiscard]] std::string pawl_version();

}  // namespace pawl::cli
