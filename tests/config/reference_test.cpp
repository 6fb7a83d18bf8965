#include <algorithm>
#include <array>
#include <fstream>
#include <regex>
#include <sstream>

#include "config/documents.hpp"
#include "config/load.hpp"
#include "config/option_table.hpp"
#include "loading.hpp"
#include "prelude.hpp"

using namespace pawl::config;

namespace {

std::string content(const std::string& path) {
  std::ifstream file{path, std::ios::binary};
  REQUIRE(file.is_open());
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

std::string reference() {
  return content(PAWL_SOURCE_DIR "/conf/reference.toml");
}

std::vector<std::string> handler_keys() {
  std::vector<std::string> keys;
  for (const OptionDescriptor& option : option_table()) {
    if (option.of_handler())
      keys.emplace_back(option.name);
  }
  return keys;
}

std::vector<std::string> lines(const std::string& text) {
  std::vector<std::string> all;
  std::istringstream stream{text};
  for (std::string line; std::getline(stream, line);)
    all.push_back(line);
  return all;
}

/// The commented example of a handler, as TOML.
std::string handler_example() {
  std::string text;
  bool in_example = false;
  for (const std::string& line : lines(reference())) {
    in_example = in_example || line == "# [[handler]]";
    if (in_example)
      text += (line.size() > 2 ? line.substr(2) : "") + "\n";
  }
  return text;
}

}  // namespace

TEST_CASE("conf/reference.toml holds the defaults") {
  LoadRequest written;
  written.path = PAWL_SOURCE_DIR "/conf/reference.toml";
  written.overrides = {"kafka.bootstrap_servers=h:1", "kafka.group=g", "idempotency.key={key}",
                       "handler=[{ topics = [\"t\"], sql = \"SELECT 1\" }]"};
  LoadRequest unsaid = written;
  unsaid.path.clear();
  CHECK(load(written) == load(unsaid));
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
  CHECK(options.handlers.size() == 3);
  for (const std::string& key : handler_keys()) {
    CAPTURE(key);
    CHECK(std::regex_search(example, std::regex{"(^|\n)" + key + " = "}));
  }
}

TEST_CASE("conf/reference.toml is what the table gives") {
  INFO(
      "framework/config/option_table.cpp or conf/reference.toml has changed: run "
      "scripts/documents");
  CHECK(reference() == reference_toml(option_table()));
}

TEST_CASE("each section has a page, with a heading for each option") {
  const auto pages = reference_pages(option_table());
  for (const OptionDescriptor& option : option_table()) {
    CAPTURE(option.option());
    const auto page = std::ranges::find(pages, option.section, &ReferencePage::name);
    REQUIRE(page != pages.end());
    const std::string heading = option.free_table ? "[kafka.librdkafka]" : std::string{option.name};
    CHECK_THAT(page->text, StartsWith("# `[") && ContainsSubstring("\n## `" + heading + "`\n"));
  }
}

TEST_CASE("a page of the reference has values, defaults, and links from its folder") {
  constexpr std::array<Word, 2> kWords{{{"on", "pawl does it"}, {"off", "pawl does not"}}};
  const std::vector<OptionDescriptor> table{
      {.section = "log",
       .name = "level",
       .field =
           WordField{[](Settings& settings) -> std::string& { return settings.options.log.level; },
                     kWords},
       .meaning = "See [Failures](failures.md#halt), [keys](reference/kafka.md), and "
                  "[RFC](https://rfc.example)."}};
  const auto pages = reference_pages(table);
  REQUIRE(pages.size() == 1);
  CHECK(pages[0].name == "log");
  CHECK_THAT(pages[0].text,
             EndsWith("\n## `level`\n\nSee [Failures](../failures.md#halt), [keys](kafka.md), and "
                      "[RFC](https://rfc.example).\n\n* `\"on\"`: pawl does it.\n* `\"off\"`: "
                      "pawl does not.\n\nDefault: `\"info\"`.\n"));
}
