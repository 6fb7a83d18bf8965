#pragma once

#include "pawl/options.hpp"

namespace pawl::handlers {

/// The options of a request for people to read: "***" in the place of each text that is written out
/// and may be a secret. Placeholders of the message, ${NAME}, and ${file:PATH} stay. Hidden are
/// values of headers (except of the few that describe content) and of parameters of the URL, and
/// values of `json` and of a `body` that is JSON or a form if texts::may_be_secret() knows the name
/// of the value or of what it is in. They are options again, of a request of the same form.
[[nodiscard]] HttpOptions without_secrets(HttpOptions options);

/// With "***" for each ${NAME} and ${file:PATH}, which may be secret and need not exist.
[[nodiscard]] HttpOptions without_references(HttpOptions options);

}  // namespace pawl::handlers
