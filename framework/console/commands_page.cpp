#include "console/commands_page.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace pawl::cli {
namespace {

/// Text in which Markdown finds no markup but that of code.
std::string plain(std::string_view text) {
  std::string result;
  for (const char c : text) {
    if (c == '<') {
      result += "&lt;";
      continue;
    }
    if (c == '|' || c == '*')
      result += '\\';
    result += c;
  }
  return result;
}

std::string usage(const CommandTree& command, const std::string& path) {
  auto text = path;
  if (!command.subcommands.empty())
    text += " COMMAND";
  for (const auto& option : command.options) {
    if (option.by_place)
      text += fmt::format(" {}{}{}", option.required ? "" : "[", option.names.front(),
                          option.required ? "" : "]");
  }
  return text + " [OPTION...]";
}

std::string row(const CommandTree::Option& option) {
  auto head = fmt::format("`{}`", fmt::join(option.names, "`, `"));
  if (!option.value.empty() && !option.by_place)
    head += fmt::format(" {}", plain(option.value));
  return fmt::format("| {} | {}{} |\n", head, plain(option.description),
                     option.required ? " (required)" : "");
}

void add_command(const CommandTree& command, const std::string& before, std::string& text) {
  const auto path = before.empty() ? command.name : before + " " + command.name;
  text += fmt::format("\n## `{}`\n\n{}.\n\n```text\n{}\n```\n", path, plain(command.description),
                      usage(command, path));
  std::string options;
  for (const auto& option : command.options) {
    if (before.empty() || option.names.back() != "--help")
      options += row(option);
  }
  if (!options.empty())
    text += "\n| Option | Meaning |\n|---|---|\n" + options;
  if (!command.footer.empty()) {
    text += fmt::format("\n```text\n{}{}```\n", command.footer,
                        command.footer.ends_with('\n') ? "" : "\n");
  }
  for (const auto& subcommand : command.subcommands)
    add_command(subcommand, path, text);
}

}  // namespace

std::string commands_page(const CommandTree& program) {
  std::string text =
      "# Commands\n\n"
      "All commands of `pawl` with their options and exit status. `pawl COMMAND --help` and the "
      "manual page contain the same texts. A C++ program with `pawl::App` has the same commands "
      "under its own name.\n";
  add_command(program, "", text);
  return text;
}

}  // namespace pawl::cli
