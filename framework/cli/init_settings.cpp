#include "cli/init_settings.hpp"

#include <fmt/format.h>

#include <cctype>
#include <string_view>

#include "config/document.hpp"
#include "config/in_force.hpp"
#include "config/overrides.hpp"
#include "config/values.hpp"

namespace pawl::cli {
namespace {

constexpr std::string_view kProperties = "kafka.librdkafka";

/// The option's name as names in an environment are.
std::string variable_of(const std::string& section, const std::string& name) {
  std::string variable;
  for (const char c : (section == kProperties ? "kafka" : section) + "_" + name) {
    const auto letter = static_cast<unsigned char>(c);
    variable += std::isalnum(letter) != 0 ? static_cast<char>(std::toupper(letter)) : '_';
  }
  return variable;
}

void add(InitSettings& settings, const std::string& section, const std::string& name,
         const config::Node& node) {
  if (node.kind == config::Node::Kind::kTable) {
    const auto inner = section.empty() ? name : section + "." + name;
    for (const auto& [member, value] : node.members)
      add(settings, inner, member, value);
    return;
  }
  auto value = config::toml_text(node);
  const bool is_text = node.kind == config::Node::Kind::kString;
  if (is_text && config::shown_override(section + "." + name, node.value) != node.value) {
    const auto variable = variable_of(section, name);
    settings.variables.push_back(variable);
    value = config::toml_text(config::text_value("${" + variable + "}"));
  }
  settings.sections[section][name] = value;
}

}  // namespace

InitSettings settings_of(const std::vector<std::string>& set) {
  config::Node all;
  for (const auto& text : set) {
    std::vector<config::Problem> problems;
    if (const auto node = config::parse_override(text, problems))
      config::merge(all, *node);
  }
  InitSettings settings;
  add(settings, "", "", all);
  return settings;
}

}  // namespace pawl::cli
