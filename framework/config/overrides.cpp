#include "config/overrides.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <string_view>
#include <utility>

namespace pawl::config {

namespace {

constexpr std::string_view kProperties = "kafka.librdkafka.";

std::string_view trimmed(std::string_view text) {
  const std::size_t start = std::min(text.find_first_not_of(' '), text.size());
  return text.substr(start, text.find_last_not_of(' ') + 1 - start);
}

std::vector<std::string> path_of(std::string_view option) {
  std::vector<std::string> path;
  if (option.starts_with(kProperties)) {
    path = {"kafka", "librdkafka"};
    option.remove_prefix(kProperties.size());
    path.emplace_back(option);
    return path;
  }
  while (true) {
    const std::size_t dot = std::min(option.find('.'), option.size());
    path.emplace_back(option.substr(0, dot));
    if (dot == option.size())
      return path;
    option.remove_prefix(dot + 1);
  }
}

}  // namespace

OverrideText split_override(std::string_view text) {
  const std::size_t equals = std::min(text.find('='), text.size());
  auto option = trimmed(text.substr(0, equals));
  OverrideText parts;
  parts.has_value = equals < text.size();
  if (parts.has_value)
    parts.value = trimmed(text.substr(equals + 1));
  if (option.starts_with(kProperties)) {
    auto property = option.substr(kProperties.size());
    if (property.size() > 1 && property.starts_with('"') && property.ends_with('"'))
      property = property.substr(1, property.size() - 2);
    parts.option = std::string(kProperties) + std::string(property);
  } else {
    parts.option = option;
  }
  return parts;
}

std::optional<Node> parse_override(const std::string& text, std::vector<Problem>& problems,
                                   std::string_view flag) {
  const auto [option, value, has_value] = split_override(text);
  const auto source = std::make_shared<Source>();
  source->command_line = true;
  source->name = option.empty() ? std::string(flag) : fmt::format("{} {}", flag, option);
  const auto refuse = [&](std::string what, std::string fix) {
    Problem problem;
    problem.where = source->name;
    problem.what = std::move(what);
    problem.fix = std::move(fix);
    problems.push_back(std::move(problem));
    return std::nullopt;
  };

  const auto form =
      fmt::format("Write {0} section.option=value, such as {0} kafka.group=other", flag);
  if (!has_value)
    return refuse("no value", form);
  const std::vector<std::string> path = path_of(option);
  if (std::any_of(path.begin(), path.end(), [](const auto& name) { return name.empty(); }))
    return refuse("no option", form);
  if (path.front() == "handler" && path.size() > 1) {
    return refuse(
        "options of a single handler cannot be set here",
        "Change them in the configuration file, or set handler_defaults for all handlers");
  }

  Node node = parse_override_value(source, value);
  for (auto name = path.rbegin(); name != path.rend(); ++name) {
    Node table;
    table.source = source;
    table.members.emplace(*name, std::move(node));
    node = std::move(table);
  }
  return node;
}

}  // namespace pawl::config
