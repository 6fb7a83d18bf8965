#pragma once

#include <string_view>

namespace pawl::postgres {

/// Whether a text of SQL may call a function that is not known to leave the session alone: one of
/// the application's, or of an extension. Says yes rather than no: of what looks like a call within
/// a literal or a comment, too. What triggers call does not show in the text.
[[nodiscard]] bool may_call_functions(std::string_view sql);

}  // namespace pawl::postgres
