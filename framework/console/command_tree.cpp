#include "console/command_tree.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstddef>

namespace pawl::cli {
namespace {

CommandTree::Option described(const CLI::Option& option) {
  CommandTree::Option found;
  for (const auto& name : option.get_snames())
    found.names.push_back("-" + name);
  for (const auto& name : option.get_lnames())
    found.names.push_back("--" + name);
  found.by_place = found.names.empty();
  if (found.by_place)
    found.names.push_back(option.get_name());
  if (option.get_expected_max() > 0)
    found.value = option.get_type_name();
  found.description = option.get_description();
  if (const auto standard = option.get_default_str(); !standard.empty())
    found.description += fmt::format(" (default: {})", standard);
  found.required = option.get_required();
  found.repeatable = option.get_expected_max() > 1;
  return found;
}

/// The columns "-c, --config FILE" and description.
class Lines {
 public:
  explicit Lines(std::size_t least) : width_(least) {}

  void add(std::string name, std::string description) {
    width_ = std::max(width_, name.size() + 2);
    lines_.emplace_back(std::move(name), std::move(description));
  }
  [[nodiscard]] std::string text(const std::string& heading) const {
    std::string text;
    if (!lines_.empty())
      text += fmt::format("\n{}\n", heading);
    for (const auto& [name, description] : lines_)
      text += fmt::format("  {:<{}}{}\n", name, width_, description);
    return text;
  }

 private:
  std::size_t width_;
  std::vector<std::pair<std::string, std::string>> lines_;
};

/// "-c, --config FILE"; a long name alone is in the column of long names.
std::string names_text(const CommandTree::Option& option) {
  if (option.by_place)
    return option.names.front() + (option.repeatable ? "..." : "");
  std::string text = option.names.front().starts_with("--") ? "    " : "";
  for (const auto& name : option.names)
    text += (&name == &option.names.front() ? "" : ", ") + name;
  return text + (option.value.empty() ? "" : " " + option.value);
}

std::string commands_text(const CommandTree& command) {
  constexpr std::size_t kNames = 13;
  std::string text;
  for (auto from = command.subcommands.begin(); from != command.subcommands.end();) {
    Lines lines(kNames);
    const auto& group = from->group;
    for (; from != command.subcommands.end() && from->group == group; ++from)
      lines.add(from->name, from->description);
    text += lines.text(group.empty() ? "Commands" : group);
  }
  return text;
}

}  // namespace

CommandTree tree_of(const CLI::App& parser) {
  CommandTree tree;
  tree.name = parser.get_name();
  tree.description = parser.get_description();
  tree.footer = parser.get_footer();
  tree.group = parser.get_group();
  for (const auto* option : parser.get_options()) {
    if (option != parser.get_help_ptr())
      tree.options.push_back(described(*option));
  }
  if (parser.get_help_ptr() != nullptr)
    tree.options.push_back(described(*parser.get_help_ptr()));
  for (const auto* subcommand : parser.get_subcommands([](const CLI::App*) { return true; }))
    tree.subcommands.push_back(tree_of(*subcommand));
  // A group only prints help, and has the footer of its commands.
  if (parser.get_parent() != nullptr && !tree.subcommands.empty())
    tree.footer.clear();
  return tree;
}

std::string usage_text(const CommandTree& command, const std::string& path) {
  auto text = path;
  if (!command.subcommands.empty())
    text += " COMMAND";
  for (const auto& option : command.options) {
    if (option.by_place)
      text += fmt::format(" {0}{1}{2}", option.required ? "" : "[", names_text(option),
                          option.required ? "" : "]");
  }
  for (const auto& option : command.options) {
    if (!option.by_place && option.required)
      text += fmt::format(" {} {}", option.names.back(), option.value);
  }
  return text;
}

std::string help_text(const CommandTree& command, const std::string& path) {
  constexpr std::size_t kNames = 22;
  Lines arguments(kNames);
  Lines options(kNames);
  for (const auto& option : command.options)
    (option.by_place ? arguments : options).add(names_text(option), option.description);
  return fmt::format("{}\n\nUsage: {} [OPTIONS]\n{}{}{}{}", command.description,
                     usage_text(command, path), arguments.text("Arguments"), commands_text(command),
                     options.text("Options"), command.footer.empty() ? "" : "\n" + command.footer);
}

}  // namespace pawl::cli
