#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cctype>

#include "console/command_tree.hpp"

namespace pawl::cli {
namespace {

/// Text without anything that roff interprets: man(7), groff_char(7).
std::string plain(std::string_view text) {
  std::string result;
  bool begins = true;
  for (const char c : text) {
    if (begins && (c == '.' || c == '\''))
      result += "\\&";
    begins = c == '\n';
    if (c == '\\') {
      result += "\\e";
    } else if (c == '-') {
      result += "\\-";
    } else {
      result += c;
    }
  }
  return result;
}

std::string bold(std::string_view text) {
  return fmt::format("\\fB{}\\fR", plain(text));
}

/// Lines that are laid out by spaces stay so.
std::string as_it_is(std::string_view text) {
  return fmt::format(".nf\n{}\n.fi\n", plain(text));
}

std::string option_text(const CommandTree::Option& option) {
  std::vector<std::string> names;
  for (const auto& name : option.names)
    names.push_back(bold(name));
  auto head = fmt::format("{}", fmt::join(names, ", "));
  if (!option.value.empty() && !option.by_place)
    head += fmt::format(" \\fI{}\\fR", plain(option.value));
  return fmt::format(".TP\n{}\n{}{}\n", head, plain(option.description),
                     option.required ? " (required)" : "");
}

std::string usage(const CommandTree& command, const std::string& path) {
  auto text = bold(path);
  if (!command.subcommands.empty())
    text += " \\fICOMMAND\\fR";
  for (const auto& option : command.options) {
    if (option.by_place)
      text += fmt::format(" {0}\\fI{1}\\fR{2}", option.required ? "" : "[",
                          plain(option.names.front()), option.required ? "" : "]");
  }
  return text + " [\\fIOPTION\\fR...]";
}

void add_command(const CommandTree& command, const std::string& before, std::string& text) {
  const auto path = before.empty() ? command.name : before + " " + command.name;
  if (!before.empty())
    text += fmt::format(".SS {}\n{}\n.PP\n{}\n", plain(path), plain(command.description),
                        usage(command, path));
  for (const auto& option : command.options) {
    if (before.empty() || option.names.back() != "--help")
      text += option_text(option);
  }
  if (!before.empty() && !command.footer.empty())
    text += ".PP\n" + as_it_is(command.footer);
  for (const auto& subcommand : command.subcommands)
    add_command(subcommand, path, text);
}

constexpr std::string_view kEnvironment =
    ".SH ENVIRONMENT\n"
    ".TP\n\\fBPAWL_CONFIG\\fR\nConfiguration file, if \\fB\\-\\-config\\fR is not given. Commands "
    "in texts omit\n"
    "\\fB\\-\\-config\\fR if it names the file in use\n";

/// Texts name pages and options as a checkout has them.
constexpr std::string_view kFiles =
    ".SH FILES\n"
    ".TP\n\\fI/usr/share/doc/pawl/docs\\fR\nPages that texts call docs/NAME.md\n"
    ".TP\n\\fI/usr/share/pawl/conf/reference.toml\\fR\nAll options: conf/reference.toml\n"
    ".TP\n\\fI/usr/share/pawl/migrations\\fR\nFiles that migrate applies\n";

}  // namespace

std::string manual_page(const CommandTree& program, const std::string& version) {
  std::string upper;
  for (const char c : program.name)
    upper += static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  std::string commands;
  add_command(program, "", commands);
  return fmt::format(
      ".TH {} 1 \"\" \"{}\"\n"
      ".SH NAME\n{} \\- {}\n"
      ".SH SYNOPSIS\n{}\n"
      ".SH DESCRIPTION\n{}"
      ".SH COMMANDS\n{}{}{}",
      plain(upper), plain(version), plain(program.name), plain(program.description),
      usage(program, program.name), as_it_is(program.footer), commands, kEnvironment, kFiles);
}

}  // namespace pawl::cli
