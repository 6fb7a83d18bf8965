#include "postgres/statement.hpp"

#include <algorithm>
#include <array>
#include <cctype>

namespace pawl::postgres {
namespace {

/// How many bytes of the text's beginning are of one word. Words are names without quotation marks
/// (PostgreSQL manual, 4.1.1), of which `$` only ends one: that finds rather too many.
std::size_t word_length(std::string_view text) {
  const auto* const end = std::find_if_not(text.begin(), text.end(), [](unsigned char c) {
    return std::isalnum(c) != 0 || c == '_' || c >= 0x80;
  });
  return static_cast<std::size_t>(end - text.begin());
}

}  // namespace

bool text_may_change_settings(std::string_view sql) {
  constexpr std::array<std::string_view, 7> kHarmless{"select", "insert", "update", "delete",
                                                      "merge",  "values", "with"};
  std::string text(sql);
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  std::string_view command = text;
  command.remove_prefix(std::min(command.find_first_not_of(" \t\r\n"), command.size()));
  if (std::find(kHarmless.begin(), kHarmless.end(), command.substr(0, word_length(command))) ==
      kHarmless.end())
    return true;
  // U&"..." can spell any name (PostgreSQL manual, 4.1.2.1).
  if (command.find("u&\"") != std::string_view::npos)
    return true;
  // An UPDATE of pg_settings sets (54.24). The functions after it execute a text.
  constexpr std::array<std::string_view, 7> kSetting{"set_config",
                                                     "pg_settings",
                                                     "query_to_xml",
                                                     "query_to_xmlschema",
                                                     "query_to_xml_and_xmlschema",
                                                     "ts_stat",
                                                     "ts_rewrite"};
  while (!command.empty()) {
    const auto length = word_length(command);
    if (std::find(kSetting.begin(), kSetting.end(), command.substr(0, length)) != kSetting.end())
      return true;
    command.remove_prefix(std::max<std::size_t>(length, 1));
  }
  return false;
}

}  // namespace pawl::postgres
