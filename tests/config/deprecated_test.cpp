// Options that were renamed: by a table of the test's own, and those of the program's.
#include <array>

#include "config/documents.hpp"
#include "loading.hpp"
#include "prelude.hpp"

using namespace pawl::config;

namespace {

/// The program's table, where kafka.group was once kafka.consumer_group, failures.retry_for was
/// failures.patience and consumer.workers was process.threads.
std::vector<OptionDescriptor> renamed_table() {
  static constexpr std::array<std::string_view, 1> kGroup{"consumer_group"};
  static constexpr std::array<std::string_view, 2> kRetryFor{"patience", "tries.patience"};
  static constexpr std::array<std::string_view, 1> kWorkers{"process.threads"};
  const auto real = option_table();
  std::vector<OptionDescriptor> table(real.begin(), real.end());
  for (OptionDescriptor& option : table) {
    if (option.option() == "kafka.group")
      option.deprecated = kGroup;
    if (option.option() == "failures.retry_for")
      option.deprecated = kRetryFor;
    if (option.option() == "consumer.workers")
      option.deprecated = kWorkers;
  }
  return table;
}

struct Loaded {
  Options options;
  std::vector<std::string> warnings;
  std::string errors;
};

Loaded load_renamed(const std::string& text, std::vector<std::string> overrides = {}) {
  const auto table = renamed_table();
  Loaded loaded;
  LoadRequest asked = request(text, std::move(overrides), {{"GROUP", "hunter2"}});
  asked.table = table;
  asked.warn = [&](const std::string& warning) { loaded.warnings.push_back(warning); };
  try {
    loaded.options = load(asked);
  } catch (const ConfigErrors& errors) {
    loaded.errors = errors.what();
  }
  return loaded;
}

/// kRequired with another first line for the group's.
std::string with_group_line(const std::string& line) {
  std::string text = kRequired;
  const std::string from = "group = \"payments\"";
  return text.replace(text.find(from), from.size(), line);
}

}  // namespace

TEST_CASE("an option under its old name is read, with a warning that has place and new name") {
  const auto loaded = load_renamed(with_group_line("consumer_group = \"${GROUP}\"") +
                                   "patience = \"7s\"\n[process]\nthreads = 3\n");
  CHECK(loaded.errors.empty());
  CHECK(loaded.options.kafka.group == "hunter2");
  CHECK(loaded.options.consumer.workers == 3);
  REQUIRE(loaded.options.handlers.at(0).failures.has_value());
  CHECK(loaded.options.handlers[0].failures->retry_for == std::chrono::seconds{7});
  CHECK(loaded.options.failures.retry_for == std::chrono::minutes{5});
  CHECK(loaded.warnings ==
        std::vector<std::string>{
            "a.toml:3: kafka.consumer_group is now called kafka.group; rename it, the old name "
            "will go",
            "a.toml:12: handler[0].patience is now called handler[0].retry_for; rename it, the old "
            "name will go",
            "a.toml:14: process.threads is now called consumer.workers; rename it, the old name "
            "will go"});
}

TEST_CASE("names that options have had in earlier versions are read") {
  const auto loaded =
      load_renamed(std::string(kRequired) + "then = \"park\"\n[consumer]\nunmatched = \"skip\"\n",
                   {"failures.then=dead-letter"});
  CHECK(loaded.errors.empty());
  CHECK(loaded.options.failures.on_failure == FailurePolicy::kDeadLetter);
  CHECK(loaded.options.handlers.at(0).failures->on_failure == FailurePolicy::kPark);
  CHECK(loaded.options.failures.unmatched == Unmatched::kSkip);
  CHECK(loaded.warnings.size() == 3);
}

TEST_CASE("a --set may have an old name too, and counts over the file's new one") {
  const auto loaded = load_renamed(
      kRequired, {"kafka.consumer_group=other", "process.threads=2", "tries.patience=3s"});
  CHECK(loaded.errors.empty());
  CHECK(loaded.options.kafka.group == "other");
  CHECK(loaded.options.consumer.workers == 2);
  CHECK(loaded.options.failures.retry_for == std::chrono::seconds{3});
  REQUIRE(loaded.warnings.size() == 3);
  CHECK(loaded.warnings[0] ==
        "--set kafka.consumer_group=...: kafka.consumer_group is now called kafka.group; rename "
        "it, the old name will go");
}

TEST_CASE("both names in one file are an error with both places") {
  const auto loaded =
      load_renamed(with_group_line("group = \"payments\"\nconsumer_group = \"other\"") +
                   "retry_for = \"1s\"\npatience = \"2s\"\n");
  CHECK(loaded.errors ==
        "a.toml:4: kafka.consumer_group: the old name of kafka.group, which stands at a.toml:3 as "
        "well; remove the old one\n"
        "a.toml:14: handler[0].patience: the old name of handler[0].retry_for, which stands at "
        "a.toml:13 as well; remove the old one");
}

TEST_CASE("what is wrong with a value under an old name is told at its place, by the new name") {
  const auto loaded = load_renamed(kRequired + "[process]\nthreads = 0\nthread = 1\n");
  CHECK(loaded.errors ==
        "a.toml:12: process: unknown section; see conf/reference.toml for the "
        "sections\n"
        "a.toml:13: consumer.workers = 0: out of range; give 1 to 256");
}

TEST_CASE("the documents name an option's old names") {
  const auto table = renamed_table();
  CHECK_THAT(reference_toml(table), ContainsSubstring("Its old name is `process.threads`."));
}
