#include <catch2/catch_test_macros.hpp>
#include <fstream>
#include <map>
#include <memory>
#include <regex>
#include <set>
#include <sstream>

#include "config/document.hpp"
#include "config/load.hpp"
#include "config/shape.hpp"
#include "loading.hpp"

using namespace pawl;
using namespace pawl::config;
using namespace pawl::config::test;

namespace {

std::string content(const std::string& path) {
  std::ifstream file{path, std::ios::binary};
  REQUIRE(file.is_open());
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

std::vector<std::string> lines(const std::string& text) {
  std::vector<std::string> all;
  std::istringstream stream{text};
  for (std::string line; std::getline(stream, line);)
    all.push_back(line);
  return all;
}

using Defaults = std::map<std::string, std::string>;

/// "kafka.session_timeout" to "\"45s\"", as the lines of a TOML file have them.
Defaults defaults_in_toml(const std::string& text) {
  Defaults found;
  std::string section;
  static const std::regex kSection{R"(^\[([a-z_.]+)\]$)"};
  static const std::regex kOption{R"(^([a-z_]+) = (.*)$)"};
  for (const std::string& line : lines(text)) {
    std::smatch match;
    if (std::regex_match(line, match, kSection))
      section = match[1];
    if (std::regex_match(line, match, kOption))
      found[section + "." + match[1].str()] = match[2];
  }
  return found;
}

/// The same from the tables "| `option` | `default` | ..." below the headings "## [section]".
Defaults defaults_in_markdown(const std::string& text) {
  Defaults found;
  std::string section;
  static const std::regex kSection{R"(^## .*`\[\[?([a-z_.]+)\]\]?`.*$)"};
  static const std::regex kRow{R"(^\| `([a-z_]+)` \| `([^`]*)` \|.*$)"};
  for (const std::string& line : lines(text)) {
    std::smatch match;
    if (std::regex_match(line, match, kSection))
      section = match[1];
    if (std::regex_match(line, match, kRow))
      found[section + "." + match[1].str()] = match[2];
  }
  return found;
}

/// The commented example of a handler, as TOML.
std::string handler_example() {
  std::string text;
  bool in_example = false;
  for (const std::string& line : lines(std::string{reference_text()})) {
    in_example = in_example || line == "# [[handler]]";
    if (in_example)
      text += (line.size() > 2 ? line.substr(2) : "") + "\n";
  }
  return text;
}

}  // namespace

TEST_CASE("the built-in defaults are conf/reference.toml") {
  CHECK(reference_text() == content(PAWL_SOURCE_DIR "/conf/reference.toml"));
}

TEST_CASE("the defaults of a config are those of the options in code") {
  Options expected;
  expected.kafka.bootstrap_servers = "localhost:9092";
  expected.kafka.group = "payments";
  expected.idempotency.key = "{header:event-id}";
  HandlerOptions& handler = expected.handlers.emplace_back();
  handler.topics = {"payments"};
  handler.sql = {{"SELECT 1", std::nullopt}};
  handler.where = "a.toml:9";
  CHECK(load(request(kRequired)) == expected);
}

TEST_CASE("the reference shows every option of a handler, and its example loads") {
  const std::string example = handler_example();
  CAPTURE(example);
  const Options options = load(request(R"([kafka]
bootstrap_servers = "h:1"
group = "g"
[idempotency]
key = "{key}"
)" + example));
  CHECK(options.handlers.size() == 2);
  for (const std::string& key : handler_keys()) {
    CAPTURE(key);
    CHECK(std::regex_search(example, std::regex{"(^|\n)" + key + " = "}));
  }
}

TEST_CASE("docs/configuration.md names every option with its default, and no other") {
  Defaults documented = defaults_in_markdown(content(PAWL_SOURCE_DIR "/docs/configuration.md"));
  std::set<std::string> handler;
  for (auto option = documented.begin(); option != documented.end();) {
    const bool of_handler = option->first.starts_with("handler.");
    if (of_handler)
      handler.insert(option->first.substr(8));
    option = of_handler ? documented.erase(option) : std::next(option);
  }
  CHECK(documented == defaults_in_toml(std::string{reference_text()}));
  CHECK(handler == std::set<std::string>(handler_keys().begin(), handler_keys().end()));
}

TEST_CASE("the lines of the reference are all of its options") {
  const auto source = std::make_shared<Source>();
  source->text = reference_text();
  std::vector<Problem> problems;
  const Node root = parse_document(source, problems).value();
  std::set<std::string> parsed;
  for (const auto& [section, table] : root.members) {
    for (const auto& [key, value] : table.members) {
      if (value.kind != Node::Kind::kTable)
        parsed.insert(dotted(section, key));
    }
  }
  std::set<std::string> written;
  for (const auto& [option, value] : defaults_in_toml(source->text))
    written.insert(option);
  CHECK(parsed == written);
}
