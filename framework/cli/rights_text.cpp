#include "cli/rights_text.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <span>
#include <string_view>

#include "config/shell_word.hpp"

namespace pawl::cli {
namespace {

constexpr std::size_t kMostNames = 4;
constexpr std::string_view kOn = " on ";

}  // namespace

std::string rights_text(std::vector<std::string> rights) {
  std::ranges::sort(rights);
  std::map<std::string, std::vector<std::string>> by_privilege;
  for (const auto& right : rights) {
    const auto on = std::min(right.find(kOn), right.size());
    by_privilege[right.substr(0, on)].push_back(
        right.substr(std::min(on + kOn.size(), right.size())));
  }
  std::vector<std::string> texts;
  for (const auto& [privilege, names] : by_privilege) {
    const auto shown = std::span(names).first(std::min(names.size(), kMostNames));
    texts.push_back(fmt::format("{} on {}{}", privilege, fmt::join(shown, ", "),
                                shown.size() == names.size()
                                    ? ""
                                    : fmt::format(" and {} more", names.size() - shown.size())));
  }
  return fmt::format("{}", fmt::join(texts, "; "));
}

std::string grants_command(const std::string& program, const std::string& role,
                           const std::string& schema, bool relay, const GrantingRole& by) {
  std::string command = shell_word(program) + " migrate grants";
  if (relay)
    command += " --relay";
  command += " --role " + shell_word(role);
  if (schema != "pawl")
    command += " --schema " + shell_word(schema);
  command += " | psql";
  for (const auto& [option, value] : {std::pair<const char*, const std::string&>{"-h", by.host},
                                      {"-p", by.port},
                                      {"-U", by.owner},
                                      {"-d", by.database}}) {
    if (!value.empty())
      command += fmt::format(" {} {}", option, shell_word(value));
  }
  return command;
}

}  // namespace pawl::cli
