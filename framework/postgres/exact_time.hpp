#pragma once

#include <fmt/format.h>

#include <string>
#include <string_view>

namespace pawl::postgres {

/// SQL for the text of a timestamptz that names the same time in every DateStyle and TimeZone, to
/// the microsecond, as Backend::backend_start has it. Its cast to text would not.
inline std::string exact_time(std::string_view expression) {
  return fmt::format(R"sql(to_char({} AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI:SS.US"+00"'))sql",
                     expression);
}

}  // namespace pawl::postgres
