#include "config/shape.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <optional>
#include <utility>

namespace pawl::config {

namespace {

constexpr const char* kHandler = "handler";
constexpr const char* kFreeTable = "librdkafka";

std::vector<std::string> names_of(const Node& table) {
  std::vector<std::string> names;
  names.reserve(table.members.size());
  for (const auto& [name, node] : table.members)
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
  ShapeCheck(const Node& reference, std::vector<Problem>& problems)
      : reference_(reference), problems_(problems) {}

  void layer(Node& root) {
    erase_members(root, [&](const std::string& name, Node& node) {
      return name == kHandler ? !handlers(node) : !section(name, node);
    });
  }

 private:
  bool section(const std::string& name, Node& node) {
    const Node* const known = reference_.member(name);
    if (known == nullptr) {
      unknown_section(name, node);
      return false;
    }
    if (!is_table(name, node))
      return false;
    erase_members(node, [&](const std::string& key, Node& value) {
      if (known->member(key) == nullptr) {
        unknown_key(name, key, value, known);
        return true;
      }
      return key == kFreeTable && !is_table(dotted(name, key), value);
    });
    return true;
  }

  bool is_table(const std::string& name, const Node& node) {
    if (node.kind == Node::Kind::kTable)
      return true;
    report(node, name, "expected a section, found " + node.describe(),
           fmt::format("write its options below [{}]", name));
    return false;
  }

  bool handlers(Node& node) {
    const bool array = node.kind == Node::Kind::kArray &&
                       std::all_of(node.items.begin(), node.items.end(), [](const Node& item) {
                         return item.kind == Node::Kind::kTable;
                       });
    if (!array) {
      const std::string found =
          node.kind == Node::Kind::kArray ? "an array of something else" : node.describe();
      report(node, kHandler, "expected an array of tables, found " + found,
             "write [[handler]] with two brackets, once for each handler");
      return false;
    }
    for (std::size_t i = 0; i < node.items.size(); ++i)
      handler(node.items[i], i);
    return true;
  }

  void handler(Node& node, std::size_t index) {
    erase_members(node, [&](const std::string& key, Node& value) {
      const auto& keys = handler_keys();
      if (std::find(keys.begin(), keys.end(), key) != keys.end())
        return false;
      std::string fix = "see [[handler]] in conf/reference.toml";
      if (const auto near = nearest(key, keys))
        fix = fmt::format("did you mean {}?", *near);
      report(value, fmt::format("{}[{}].{}", kHandler, index, key), "unknown option", fix);
      return true;
    });
  }

  void unknown_section(const std::string& name, const Node& node) {
    std::vector<std::string> sections = names_of(reference_);
    sections.emplace_back(kHandler);
    const bool table = node.kind == Node::Kind::kTable || node.kind == Node::Kind::kArray;
    if (!table)
      return unknown_key("", name, node, nullptr);
    std::string fix = "see conf/reference.toml for the sections";
    if (const auto near = nearest(name, sections)) {
      fix = *near == kHandler ? "did you mean [[handler]]?"
                              : fmt::format("did you mean [{}]?", *near);
    }
    report(node, name, "unknown section", fix);
  }

  /// The nearest key of the same section, else the same or the nearest key of another one: an
  /// option below the wrong heading is as likely as a slip of the finger.
  void unknown_key(const std::string& section_name, const std::string& key, const Node& node,
                   const Node* known) {
    std::optional<std::string> near;
    if (known != nullptr) {
      near = nearest(key, names_of(*known));
      if (near)
        near = dotted(section_name, *near);
    }
    std::vector<std::string> elsewhere;
    for (const auto& [name, table] : reference_.members) {
      if (table.member(key) != nullptr)
        near = near.value_or(dotted(name, key));
      for (const auto& [other, value] : table.members)
        elsewhere.push_back(other);
    }
    if (!near) {
      if (const auto other = nearest(key, elsewhere)) {
        for (const auto& [name, table] : reference_.members) {
          if (table.member(*other) != nullptr)
            near = near.value_or(dotted(name, *other));
        }
      }
    }
    std::string fix = "see conf/reference.toml for the options";
    if (near)
      fix = fmt::format("did you mean {}?", *near);
    if (section_name == "kafka" &&
        (key.find('.') != std::string::npos || node.kind == Node::Kind::kTable)) {
      fix = "properties of librdkafka stand below [kafka.librdkafka]";
    }
    report(node, dotted(section_name, key), "unknown option", fix);
  }

  void report(const Node& node, std::string option, std::string what, std::string fix) {
    problems_.push_back(problem_at(node, std::move(option), std::move(what), std::move(fix)));
  }

  const Node& reference_;
  std::vector<Problem>& problems_;
};

}  // namespace

const std::vector<std::string>& handler_keys() {
  static const std::vector<std::string> keys{"name",          "topics",       "when",
                                             "sql",           "function",     "batch",
                                             "key",           "scope",        "missing_key",
                                             "conflict",      "timeout",      "isolation",
                                             "then",          "max_attempts", "max_crashes",
                                             "retry_initial", "retry_max",    "program_error_retry",
                                             "retry_for",     "breaker"};
  return keys;
}

void check_shape(Node& layer, const Node& reference, std::vector<Problem>& problems) {
  ShapeCheck{reference, problems}.layer(layer);
}

}  // namespace pawl::config
