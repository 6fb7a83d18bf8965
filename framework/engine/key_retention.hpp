#pragma once

#include <chrono>
#include <map>
#include <string>
#include <utility>

#include "pawl/options.hpp"

namespace pawl::engine {

/// How long keys are kept, by scope and topic; zero: for ever.
using KeyRetentions = std::map<std::pair<std::string, std::string>, milliseconds>;

/// The longer one of two, of which zero is for ever.
[[nodiscard]] milliseconds longer(milliseconds one, milliseconds other);

/// How long a handler wants its keys to be kept.
[[nodiscard]] milliseconds key_retention(const HandlerOptions& handler, const Options& options);

/// What the handlers want. Of several that put a topic's keys into one scope the longest counts:
/// they all claim keys there, so none may lose what another still needs.
[[nodiscard]] KeyRetentions key_retentions(const Options& options);

}  // namespace pawl::engine
