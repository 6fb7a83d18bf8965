#include "config/substitution.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <string_view>
#include <utility>

namespace pawl::config {

namespace {

constexpr std::string_view kFilePrefix = "file:";

bool is_variable_name(std::string_view name) {
  const auto letter = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
  };
  return !name.empty() && letter(name.front()) &&
         std::all_of(name.begin(), name.end(),
                     [&](char c) { return letter(c) || (c >= '0' && c <= '9'); });
}

class Substitution {
 public:
  Substitution(const EnvironmentLookup& environment, Files& files, std::vector<Problem>& problems)
      : environment_(environment), files_(files), problems_(problems) {}

  void visit(Node& node, const std::string& option) {
    for (auto& [name, member] : node.members) {
      visit(member, dotted(option, name));
    }
    for (std::size_t i = 0; i < node.items.size(); ++i) {
      visit(node.items[i], fmt::format("{}[{}]", option, i));
    }
    if (node.kind == Node::Kind::kString)
      replace(node, option);
  }

 private:
  void replace(Node& node, const std::string& option) {
    std::string_view rest = node.written;
    if (rest.find("${") == std::string_view::npos)
      return;
    std::string out;
    for (std::size_t at = rest.find("${"); at != std::string_view::npos; at = rest.find("${")) {
      if (at > 0 && rest[at - 1] == '$') {
        out += rest.substr(0, at - 1);
        out += "${";
        rest.remove_prefix(at + 2);
        continue;
      }
      const std::size_t end = rest.find('}', at);
      if (end == std::string_view::npos) {
        report(node, option, "${ without }", "Close it, or write $${ for a literal ${");
        break;
      }
      out += rest.substr(0, at);
      out += look_up(node, option, std::string{rest.substr(at + 2, end - at - 2)});
      node.substituted = true;
      rest.remove_prefix(end + 1);
    }
    out += rest;
    node.value = std::move(out);
  }

  std::string look_up(const Node& node, const std::string& option, const std::string& name) {
    if (name.starts_with(kFilePrefix)) {
      return file_content(node, option, name.substr(kFilePrefix.size()));
    }
    if (!is_variable_name(name)) {
      report(node, option,
             fmt::format("${{{}}} is neither an environment variable nor a file", name),
             "Write ${NAME}, ${file:PATH}, or $${ for a literal ${");
      return "";
    }
    if (auto value = environment_(name))
      return *value;
    report(node, option, fmt::format("the environment variable {} is not set", name),
           "Set it, or write $${ for a literal ${");
    return "";
  }

  std::string file_content(const Node& node, const std::string& option, const std::string& name) {
    const std::filesystem::path path = std::filesystem::path{node.source->folder} / name;
    auto content = files_.read(path);
    if (!content.text) {
      report(node, option,
             fmt::format("the file {} cannot be read ({})", path.string(), content.problem),
             "Use the path of a file that this user may read");
      return "";
    }
    auto text = *std::move(content.text);
    if (text.ends_with('\n'))
      text.pop_back();
    if (text.ends_with('\r'))
      text.pop_back();
    if (text.find('\0') != std::string::npos) {
      report(node, option, fmt::format("the file {} contains a NUL byte", path.string()),
             "Use the path of a text file");
      return "";
    }
    return text;
  }

  void report(const Node& node, const std::string& option, std::string what, std::string fix) {
    problems_.push_back(problem_at(node, option, std::move(what), std::move(fix)));
  }

  const EnvironmentLookup& environment_;
  Files& files_;
  std::vector<Problem>& problems_;
};

}  // namespace

void substitute(Node& root, const EnvironmentLookup& environment, Files& files,
                std::vector<Problem>& problems) {
  Substitution{environment, files, problems}.visit(root, "");
}

}  // namespace pawl::config
