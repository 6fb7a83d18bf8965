#include "config/deprecated.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <utility>

namespace pawl::config {

namespace {

constexpr const char* kHandler = "handler";

Node* table_in(Node& node, const std::string& name) {
  const auto found = node.members.find(name);
  const bool table = found != node.members.end() && found->second.kind == Node::Kind::kTable;
  return table ? &found->second : nullptr;
}

class Renaming {
 public:
  Renaming(OptionTable table, std::vector<std::string>& warnings, std::vector<Problem>& problems)
      : table_(table), warnings_(warnings), problems_(problems) {}

  void option(Node& layer, const OptionDescriptor& option, std::string_view old) {
    const std::size_t dot = old.find('.');
    const bool elsewhere = dot != std::string_view::npos;
    const std::string section{elsewhere ? old.substr(0, dot) : option.section};
    const std::string key{elsewhere ? old.substr(dot + 1) : old};
    if (option.section != kHandler)
      in_section(layer, option, section, key);
    if (option.of_handler() && (!elsewhere || section == kHandler))
      in_handlers(layer, option, key);
  }

 private:
  void in_section(Node& layer, const OptionDescriptor& option, const std::string& section,
                  const std::string& key) {
    Node* const from = table_in(layer, section);
    if (from == nullptr || !from->members.contains(key))
      return;
    Node value = std::move(from->members.extract(key).mapped());
    const bool gone = std::none_of(table_.begin(), table_.end(),
                                   [&](const auto& known) { return known.section == section; });
    if (gone && from->members.empty())
      layer.members.erase(section);
    Node empty;
    empty.source = value.source;
    empty.line = value.line;
    Node& to =
        layer.members.try_emplace(std::string{option.section}, std::move(empty)).first->second;
    put(to, std::move(value), option, dotted(section, key), option.option());
  }

  void in_handlers(Node& layer, const OptionDescriptor& option, const std::string& key) {
    const auto handlers = layer.members.find(kHandler);
    if (handlers == layer.members.end())
      return;
    for (std::size_t i = 0; i < handlers->second.items.size(); ++i) {
      Node& handler = handlers->second.items[i];
      if (!handler.members.contains(key))
        continue;
      const std::string name = fmt::format("{}[{}]", kHandler, i);
      put(handler, std::move(handler.members.extract(key).mapped()), option, dotted(name, key),
          dotted(name, option.name));
    }
  }

  void put(Node& to, Node value, const OptionDescriptor& option, const std::string& old,
           const std::string& now) {
    const Node* const both = to.member(std::string{option.name});
    if (both != nullptr) {
      problems_.push_back(problem_at(
          value, old,
          fmt::format("the old name of {}, which stands at {} as well", now, both->where()),
          "remove the old one"));
      return;
    }
    warnings_.push_back(fmt::format("{}: {} is now called {}; rename it, the old name will go",
                                    value.where(), old, now));
    to.members.emplace(option.name, std::move(value));
  }

  OptionTable table_;
  std::vector<std::string>& warnings_;
  std::vector<Problem>& problems_;
};

}  // namespace

void rename_deprecated(Node& layer, OptionTable table, std::vector<std::string>& warnings,
                       std::vector<Problem>& problems) {
  Renaming renaming{table, warnings, problems};
  for (const OptionDescriptor& option : table) {
    for (const std::string_view old : option.deprecated)
      renaming.option(layer, option, old);
  }
}

}  // namespace pawl::config
