#include "postgres/statement.hpp"

#include <algorithm>
#include <array>
#include <cctype>

namespace pawl::postgres {

bool text_may_change_settings(std::string_view sql) {
  constexpr std::array<std::string_view, 7> kHarmless{"select", "insert", "update", "delete",
                                                      "merge",  "values", "with"};
  std::string text(sql);
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  std::string_view command = text;
  command.remove_prefix(std::min(command.find_first_not_of(" \t\r\n"), command.size()));
  if (std::none_of(kHarmless.begin(), kHarmless.end(),
                   [&command](auto word) { return command.starts_with(word); }))
    return true;
  // An UPDATE of pg_settings sets (PostgreSQL manual, 54.24). The functions after it execute a
  // text. U&"..." can spell any name (4.1.2.1).
  constexpr std::array<std::string_view, 6> kSetting{"set_config", "pg_settings", "query_to_xml",
                                                     "ts_stat",    "ts_rewrite",  "u&\""};
  return std::any_of(kSetting.begin(), kSetting.end(), [&text](std::string_view word) {
    return text.find(word) != std::string::npos;
  });
}

}  // namespace pawl::postgres
