#include "config/node_reader.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "config/units.hpp"

namespace pawl::config {

namespace {

/// ${...} always gives text, also where a number is wanted.
std::string with_substitution_hint(const Node& node, std::string fix) {
  if (node.substituted)
    fix += ". ${...} always gives a string; for a value from outside, use --set";
  return fix;
}

bool is_scalar(const Node& node) {
  return node.kind != Node::Kind::kArray && node.kind != Node::Kind::kTable;
}

}  // namespace

void Findings::report(const Node& node, std::string option, std::string what, std::string fix) {
  problems.push_back(problem_at(node, std::move(option), std::move(what), std::move(fix)));
}

Reader Reader::section(const std::string& key) const {
  static const Node kEmpty;
  const Node* const found = table_.member(key);
  return Reader{found == nullptr ? kEmpty : *found, option(key), findings_};
}

const Node* Reader::node(const std::string& key) const {
  const Node* const found = table_.member(key);
  if (found != nullptr)
    findings_.nodes[option(key)] = found;
  return found;
}

bool Reader::is_text(const Node& found, const std::string& option, std::string& out) const {
  if (found.kind == Node::Kind::kString) {
    out = found.value;
    return true;
  }
  if (found.typed && is_scalar(found)) {
    out = found.written;
    return true;
  }
  const std::string fix = is_scalar(found) && !found.written.empty()
                              ? fmt::format("Put it in quotes: \"{}\"", found.written)
                              : "Write a string in quotes";
  findings_.report(found, option, "expected a string, found " + found.describe(), fix);
  return false;
}

void Reader::text(const std::string& key, std::string& out) const {
  if (const Node* const found = node(key))
    (void)is_text(*found, option(key), out);
}

void Reader::texts(const std::string& key, std::vector<std::string>& out) const {
  const Node* const found = node(key);
  if (found == nullptr)
    return;
  if (found->kind != Node::Kind::kArray) {
    const std::string fix = found->kind == Node::Kind::kString
                                ? fmt::format("Write [{}]", in_quotes(found->written))
                                : "Write strings in quotes between [ and ]";
    findings_.report(*found, option(key),
                     "expected an array of strings, found " + found->describe(), fix);
    return;
  }
  out.clear();
  for (std::size_t i = 0; i < found->items.size(); ++i) {
    const std::string name = fmt::format("{}[{}]", option(key), i);
    findings_.nodes[name] = &found->items[i];
    // A problem with one keeps its place, so that the others are still found by their index.
    out.emplace_back();
    (void)is_text(found->items[i], name, out.back());
  }
}

void Reader::flag(const std::string& key, bool& out) const {
  const Node* const found = node(key);
  if (found == nullptr)
    return;
  if (found->kind == Node::Kind::kBoolean) {
    out = found->boolean;
    return;
  }
  findings_.report(*found, option(key), "expected true or false, found " + found->describe(),
                   with_substitution_hint(*found, "Write true or false without quotes"));
}

bool Reader::is_duration(const Node& found, const std::string& option,
                         std::chrono::milliseconds& out) const {
  if (found.kind == Node::Kind::kString) {
    if (const auto parsed = parse_duration(found.value)) {
      out = *parsed;
      return true;
    }
  }
  std::string fix =
      "Write a whole number with ms, s, m, h, or d in quotes, such as \"500ms\" or \"30s\"";
  if (found.kind == Node::Kind::kInteger && found.integer >= 0) {
    fix = fmt::format("Add the unit: \"{0}s\" for seconds or \"{0}ms\" for milliseconds",
                      found.integer);
  }
  findings_.report(found, option, "expected a DURATION, found " + found.describe(), fix);
  return false;
}

void Reader::duration(const std::string& key, std::chrono::milliseconds& out) const {
  if (const Node* const found = node(key))
    (void)is_duration(*found, option(key), out);
}

void Reader::durations(const std::string& key, std::vector<std::chrono::milliseconds>& out) const {
  const Node* const found = node(key);
  if (found == nullptr)
    return;
  if (found->kind != Node::Kind::kArray) {
    findings_.report(*found, option(key),
                     "expected an array of DURATIONs, found " + found->describe(),
                     "Write DURATIONs in quotes between [ and ], such as [\"1m\", \"1h\"]");
    return;
  }
  std::vector<std::chrono::milliseconds> read;
  for (std::size_t i = 0; i < found->items.size(); ++i) {
    const std::string name = fmt::format("{}[{}]", option(key), i);
    findings_.nodes[name] = &found->items[i];
    std::chrono::milliseconds value{};
    if (!is_duration(found->items[i], name, value))
      return;
    read.push_back(value);
  }
  out = std::move(read);
}

void Reader::size(const std::string& key, std::size_t& out) const {
  const Node* const found = node(key);
  if (found == nullptr)
    return;
  if (found->kind == Node::Kind::kString) {
    if (const auto parsed = parse_size(found->value)) {
      out = *parsed;
      return;
    }
  }
  std::string fix = "Write a whole number with B, KiB, MiB, or GiB in quotes, such as \"64KiB\"";
  if (found->kind == Node::Kind::kInteger && found->integer >= 0) {
    fix =
        fmt::format("Add the unit: \"{0}B\" for bytes or \"{0}KiB\" for kibibytes", found->integer);
  }
  findings_.report(*found, option(key), "expected a size, found " + found->describe(), fix);
}

bool Reader::is_count(const Node& found, const std::string& option, std::uint64_t most,
                      std::uint64_t& out) const {
  if (found.kind == Node::Kind::kInteger && found.integer >= 0 &&
      static_cast<std::uint64_t>(found.integer) <= most) {
    out = static_cast<std::uint64_t>(found.integer);
    return true;
  }
  std::string fix = "Write a number without quotes";
  if (found.kind == Node::Kind::kInteger) {
    fix = found.integer < 0 ? "Use a number that is not negative"
                            : fmt::format("Use a number of at most {}", most);
  }
  findings_.report(found, option, "expected a whole number, found " + found.describe(),
                   with_substitution_hint(found, fix));
  return false;
}

std::optional<std::size_t> Reader::choice(const std::string& key,
                                          const std::vector<std::string_view>& names) const {
  const Node* const found = node(key);
  std::string value;
  if (found == nullptr || !is_text(*found, option(key), value))
    return std::nullopt;
  const auto name = std::find(names.begin(), names.end(), value);
  if (name != names.end())
    return static_cast<std::size_t>(name - names.begin());
  findings_.report(*found, option(key), fmt::format("invalid value {}", in_quotes(found->written)),
                   fmt::format("Use {}", any_of(names)));
  return std::nullopt;
}

}  // namespace pawl::config
