#pragma once

#include <string_view>

/// The files of framework/dashboard that browsers get.
namespace pawl::dashboard {

extern const std::string_view kStyle;
extern const std::string_view kScript;

}  // namespace pawl::dashboard
