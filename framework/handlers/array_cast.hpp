#pragma once

#include <string_view>

namespace pawl::handlers {

/// Whether the SQL begins with a cast to an array type, as in `::numeric(10,2)[]`.
[[nodiscard]] bool is_cast_to_array(std::string_view sql);

}  // namespace pawl::handlers
