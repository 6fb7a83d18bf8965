#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace pawl::handlers {

/// The names that a statement's text has where the target of INSERT, UPDATE, DELETE, MERGE,
/// TRUNCATE or COPY is written, also within WITH, as SQL writes them ("app"."t"). Some may be no
/// tables: only the catalog knows.
[[nodiscard]] std::vector<std::string> written_names(std::string_view sql);

/// The functions of dblink that a statement's text calls: "dblink", "dblink_exec", ...; each once.
[[nodiscard]] std::vector<std::string> dblink_calls(std::string_view sql);

}  // namespace pawl::handlers
