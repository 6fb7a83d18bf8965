#include "console/command_tree.hpp"

#include <CLI/CLI.hpp>

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
  found.required = option.get_required();
  return found;
}

}  // namespace

CommandTree tree_of(const CLI::App& parser) {
  CommandTree tree;
  tree.name = parser.get_name();
  tree.description = parser.get_description();
  tree.footer = parser.get_footer();
  for (const auto* option : parser.get_options()) {
    // Old names are in no group.
    if (!option->get_group().empty())
      tree.options.push_back(described(*option));
  }
  for (const auto* subcommand : parser.get_subcommands([](const CLI::App*) { return true; }))
    tree.subcommands.push_back(tree_of(*subcommand));
  return tree;
}

}  // namespace pawl::cli
