// `config show`: what is in force, and where each value comes from.
#include <fmt/format.h>

#include <iostream>

#include "cli/commands.hpp"
#include "config/in_force.hpp"
#include "config/values.hpp"
#include "console/config_arguments.hpp"
#include "console/json.hpp"
#include "console/printable.hpp"

namespace pawl::cli {
namespace {

/// Where the remarks begin, unless a value is longer.
constexpr std::size_t kRemarkColumn = 44;
constexpr std::string_view kProperties = "kafka.librdkafka";

/// "kafka.librdkafka" and "client.id"; "handler[0]" and "on_failure".
std::pair<std::string, std::string> parts_of(const std::string& option) {
  if (option.starts_with(kProperties))
    return {std::string(kProperties), option.substr(kProperties.size() + 1)};
  const auto dot = option.find('.');
  return {option.substr(0, dot), option.substr(dot + 1)};
}

/// TOML with a remark at each line.
void print_text(const std::vector<config::OptionInForce>& options) {
  std::string last;
  for (const auto& option : options) {
    const auto [section, name] = parts_of(option.option);
    if (section != last) {
      const bool handler = section.starts_with("handler[");
      std::cout << (last.empty() ? "" : "\n")
                << (handler ? fmt::format("[[handler]]  # {}", section)
                            : fmt::format("[{}]", section))
                << '\n';
      last = section;
    }
    const auto key = section == kProperties ? fmt::format("\"{}\"", name) : name;
    std::cout << printable(fmt::format(
                     "{:<{}}  # {}{}", fmt::format("{} = {}", key, config::toml_text(option.value)),
                     kRemarkColumn, option.from,
                     option.inherited.empty() ? "" : fmt::format(", {}", option.inherited)))
              << '\n';
  }
}

Json json_of(const config::Node& value) {
  using Kind = config::Node::Kind;
  switch (value.kind) {
    case Kind::kInteger:
      return value.integer;
    case Kind::kBoolean:
      return value.boolean;
    case Kind::kArray: {
      Json items = Json::array();
      for (const auto& item : value.items)
        items.push_back(json_of(item));
      return items;
    }
    case Kind::kTable: {
      Json members = Json::object();
      for (const auto& [name, member] : value.members)
        members[name] = json_of(member);
      return members;
    }
    case Kind::kTime:
      return config::time_text(value.time_ms);
    case Kind::kString:
    case Kind::kFloat:
    case Kind::kLocalTime:
      break;
  }
  return value.value;
}

void print_json(const std::vector<config::OptionInForce>& options) {
  Json root;
  auto& list = root["options"] = Json::array();
  for (const auto& option : options) {
    Json entry;
    entry["option"] = option.option;
    entry["value"] = json_of(option.value);
    entry["from"] = option.from;
    entry["inherited"] = or_null(option.inherited);
    list.push_back(std::move(entry));
  }
  std::cout << indented(root) << '\n';
}

}  // namespace

void add_config(Command& parser, Commands& commands) {
  auto* config = parser.add_subcommand("config", "Show the effective configuration");
  auto* command = config->add_subcommand(
      "show", "Print every option with its value and its source, without secrets");
  const auto arguments = add_optional_config_arguments(*command);
  const auto json = std::make_shared<bool>(false);
  command->add_json_flag(*json);
  command->footer(
      "Without --config: the defaults and the options of --set. Passwords, most properties of\n"
      "librdkafka, and arguments of commands are shown as ***, and ${...} as it was written.\n\n" +
      exit_status_text(kUsualExitStatus));
  commands.set_action(command, [arguments, json] {
    const auto options = arguments->in_force();
    *json ? print_json(options) : print_text(options);
    return kDone;
  });
}

}  // namespace pawl::cli
