#include "config/shape.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <optional>
#include <utility>

namespace pawl::config {

namespace {

constexpr const char* kHandler = "handler";
constexpr const char* kSeeAll = "See `pawl config show`";

/// The options of a section, by their names; sorted, as the first of two that are equally near is
/// suggested.
using Known = std::map<std::string, const OptionDescriptor*>;

std::vector<std::string> names_of(const Known& known) {
  std::vector<std::string> names;
  names.reserve(known.size());
  for (const auto& [name, option] : known)
    names.push_back(name);
  return names;
}

/// Like std::erase_if, whose predicate may not change what it keeps.
template <typename Predicate>
void erase_members(Node& table, Predicate unwanted) {
  for (auto member = table.members.begin(); member != table.members.end();) {
    member =
        unwanted(member->first, member->second) ? table.members.erase(member) : std::next(member);
  }
}

class ShapeCheck {
 public:
  ShapeCheck(OptionTable table, std::vector<Problem>& problems) : problems_(problems) {
    for (const OptionDescriptor& option : table) {
      if (option.of_handler())
        handler_keys_.emplace_back(option.name);
      if (option.section != kHandler)
        sections_[std::string{option.section}].emplace(option.name, &option);
    }
  }

  void layer(Node& root) {
    erase_members(root, [&](const std::string& name, Node& node) {
      return name == kHandler ? !handlers(node) : !section(name, node);
    });
  }

 private:
  bool section(const std::string& name, Node& node) {
    const auto known = sections_.find(name);
    if (known == sections_.end()) {
      unknown_section(name, node);
      return false;
    }
    if (!is_table(name, node))
      return false;
    erase_members(node, [&](const std::string& key, Node& value) {
      const auto option = known->second.find(key);
      if (option == known->second.end()) {
        unknown_key(name, key, value, &known->second);
        return true;
      }
      return option->second->free_table && !is_table(dotted(name, key), value);
    });
    return true;
  }

  bool is_table(const std::string& name, const Node& node) {
    if (node.kind == Node::Kind::kTable)
      return true;
    report(node, name, "expected a section, found " + node.describe(),
           fmt::format("Write its options below [{}]", name));
    return false;
  }

  bool handlers(Node& node) {
    const bool array = node.kind == Node::Kind::kArray &&
                       std::all_of(node.items.begin(), node.items.end(), [](const Node& item) {
                         return item.kind == Node::Kind::kTable;
                       });
    if (!array) {
      const std::string found =
          node.kind == Node::Kind::kArray ? "an array of other values" : node.describe();
      report(node, kHandler, "expected an array of tables, found " + found,
             "Write [[handler]] with two brackets, once per handler");
      return false;
    }
    for (std::size_t i = 0; i < node.items.size(); ++i)
      handler(node.items[i], i);
    return true;
  }

  void handler(Node& node, std::size_t index) {
    erase_members(node, [&](const std::string& key, Node& value) {
      if (std::find(handler_keys_.begin(), handler_keys_.end(), key) != handler_keys_.end())
        return false;
      std::string fix = "See: docs/reference/handler.md";
      if (const auto near = nearest(key, handler_keys_))
        fix = fmt::format("Did you mean {}?", *near);
      report(value, fmt::format("{}[{}].{}", kHandler, index, key), "unknown option in [[handler]]",
             fix);
      return true;
    });
  }

  void unknown_section(const std::string& name, const Node& node) {
    std::vector<std::string> sections;
    for (const auto& [section_name, known] : sections_)
      sections.push_back(section_name);
    sections.emplace_back(kHandler);
    const bool table = node.kind == Node::Kind::kTable || node.kind == Node::Kind::kArray;
    if (!table)
      return unknown_key("", name, node, nullptr);
    std::string fix = kSeeAll;
    if (const auto near = nearest(name, sections)) {
      fix = *near == kHandler ? "Did you mean [[handler]]?"
                              : fmt::format("Did you mean [{}]?", *near);
    }
    report(node, name, "unknown section", fix);
  }

  /// Suggests the nearest key of the same section. Otherwise the same key of another section, or a
  /// very near one: an option below the wrong heading is as likely as a typing error.
  void unknown_key(const std::string& section_name, const std::string& key, const Node& node,
                   const Known* known) {
    std::optional<std::string> near;
    if (known != nullptr) {
      near = nearest(key, names_of(*known));
      if (near)
        near = dotted(section_name, *near);
    }
    std::vector<std::string> elsewhere;
    for (const auto& [name, options] : sections_) {
      if (options.contains(key))
        near = near.value_or(dotted(name, key));
      for (const auto& [other, option] : options)
        elsewhere.push_back(other);
    }
    if (!near) {
      const auto most = std::min<std::size_t>(2, key.size() / 3);
      if (const auto other = nearest(key, elsewhere, most)) {
        for (const auto& [name, options] : sections_) {
          if (options.contains(*other))
            near = near.value_or(dotted(name, *other));
        }
      }
    }
    std::string fix = kSeeAll;
    if (near)
      fix = fmt::format("Did you mean {}?", *near);
    if (section_name == "kafka" &&
        (key.find('.') != std::string::npos || node.kind == Node::Kind::kTable)) {
      fix = "Properties of librdkafka belong in [kafka.librdkafka]";
    }
    const auto place = section_name.empty() ? "" : fmt::format(" in [{}]", section_name);
    report(node, dotted(section_name, key), "unknown option" + place, fix);
  }

  void report(const Node& node, std::string option, std::string what, std::string fix) {
    problems_.push_back(problem_at(node, std::move(option), std::move(what), std::move(fix)));
  }

  std::map<std::string, Known> sections_;
  std::vector<std::string> handler_keys_;
  std::vector<Problem>& problems_;
};

}  // namespace

void check_shape(Node& layer, OptionTable table, std::vector<Problem>& problems) {
  ShapeCheck{table, problems}.layer(layer);
}

}  // namespace pawl::config
