#include "postgres/statement.hpp"

#include <algorithm>
#include <array>
#include <cctype>

namespace pawl::postgres {

bool may_change_settings(std::string_view sql) {
  constexpr std::array<std::string_view, 7> kHarmless{"select", "insert", "update", "delete",
                                                      "merge",  "values", "with"};
  std::string text(sql);
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  const auto begin = std::min(text.find_first_not_of(" \t\r\n"), text.size());
  const auto end =
      std::min(text.find_first_not_of("abcdefghijklmnopqrstuvwxyz", begin), text.size());
  const auto command = std::string_view(text).substr(begin, end - begin);
  if (std::find(kHarmless.begin(), kHarmless.end(), command) == kHarmless.end())
    return true;
  // An update of pg_settings sets (54.24), the functions after it execute a text, and a name can be
  // written in numbers of its characters (PostgreSQL manual, 4.1.2.1).
  constexpr std::array<std::string_view, 6> kSetting{"set_config", "pg_settings", "query_to_xml",
                                                     "ts_stat",    "ts_rewrite",  "u&\""};
  return std::any_of(kSetting.begin(), kSetting.end(), [&text](std::string_view word) {
    return text.find(word) != std::string::npos;
  });
}

}  // namespace pawl::postgres
