#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <regex>
#include <set>
#include <string>

#include "ops/alerts_message.hpp"
#include "ops/event_table.hpp"
#include "ops/metrics_text.hpp"
#include "pawl/condition.hpp"
#include "pawl/observer.hpp"

using pawl::Event;
using pawl::Step;
using pawl::Warning;
using namespace pawl::ops;

namespace {

std::set<std::string> warning_codes() {
  std::set<std::string> codes;
  for (int i = 0; pawl::to_string(static_cast<Warning>(i)) != "unknown"; ++i)
    codes.emplace(pawl::to_string(static_cast<Warning>(i)));
  return codes;
}

/// The names in the first column of a page's tables; `head` is that column's.
std::set<std::string> documented(const std::string& page, const std::string& head) {
  std::ifstream file(std::string(PAWL_SOURCE_DIR "/docs/runbook/") + page);
  REQUIRE(file);
  std::set<std::string> names;
  bool here = false;
  for (std::string line; std::getline(file, line);) {
    here = line.starts_with("|") && (here || line.starts_with("| " + head + " |"));
    if (!here || !line.starts_with("| `"))
      continue;
    const auto column = line.substr(0, line.find(" | "));
    for (auto at = column.find('`'); at != std::string::npos; at = column.find('`', at)) {
      const auto end = column.find('`', at + 1);
      names.insert(column.substr(at + 1, end - at - 1));
      at = end + 1;
    }
  }
  return names;
}

bool is_word(std::string_view code, char separator) {
  return !code.empty() &&
         code.find_first_not_of(std::string("abcdefghijklmnopqrstuvwxyz0123456789") + separator) ==
             std::string_view::npos;
}

bool is_sentence(std::string_view text) {
  return text.size() > 2 && text.back() == '.';
}

}  // namespace

TEST_CASE("docs/runbook/warnings.md has what to do for each warning") {
  CHECK(warning_codes().size() == static_cast<std::size_t>(Warning::kSequenceBehind) + 1);
  CHECK(documented("warnings.md", "Code") == warning_codes());
}

TEST_CASE("docs/runbook/events.md has each event of level warn and error, and no other") {
  const auto warnings = warning_codes();
  std::set<std::string> loud;
  for (const auto& row : event_table()) {
    if (row.level >= spdlog::level::warn && row.level != spdlog::level::off &&
        !warnings.contains(std::string(row.code)))
      loud.emplace(row.code);
  }
  CHECK(loud.contains("outbox_message_rejected"));
  loud.insert("consumer_stopped");  // if messages were not finished
  CHECK(documented("events.md", "Event") == loud);
}

TEST_CASE("each event has one row, whose code is a thing and what happened to it") {
  std::set<std::string_view> codes;
  for (const auto& row : event_table()) {
    CAPTURE(row.code);
    CHECK(codes.insert(row.code).second);
    CHECK(is_word(row.code, '_'));
    CHECK(is_sentence(row.meaning));
    CHECK(&event_row(row.code) == &row);
  }
  CHECK_THROWS_AS(event_row("no_such_event"), std::logic_error);
}

TEST_CASE("an event has the row of its step, and a warning that of its code") {
  CHECK(event_row(Event{Step::kAssignmentReceived}).code == "assignment_received");
  CHECK(event_row(Event{Step::kPartitionHalted}).code == "partition_halted");
  CHECK(event_row(Event{Step::kPartitionHalted}).level == spdlog::level::err);
  CHECK(event_row(Event{Step::kDrainFinished}).code == "drain_finished");
  Event warning{Step::kWarning};
  warning.warning = Warning::kSequenceBehind;
  CHECK(event_row(warning).code == "sequence_behind");
  CHECK(pawl::to_string(Step::kWarning) == "warning");
  CHECK(pawl::to_string(pawl::Condition::Kind::kPartitionBlocked) == "partition_blocked");
  // Rows and enumerators that are next to each other in neither list.
  CHECK(pawl::to_string(Step::kRetryScheduled) == "retry_scheduled");
  CHECK(pawl::to_string(Step::kDatabaseUnreachable) == "database_unreachable");
  CHECK(pawl::to_string(Step::kPartitionUnblocked) == "partition_unblocked");
  CHECK(pawl::to_string(Step::kOutboxPartitionsWritable) == "outbox_partitions_writable");
  CHECK(pawl::to_string(Warning::kFetchStalled) == "fetch_stalled");
  CHECK(pawl::to_string(Warning::kPoolerNotConfigured) == "pooler_not_configured");
  CHECK(pawl::to_string(Warning::kDelayedRetryUnavailable) == "delayed_retry_unavailable");
  CHECK(pawl::to_string(Warning::kRetentionBlocked) == "retention_blocked");
}

TEST_CASE("each field that the sources add to a line has a row") {
  std::set<std::string_view> known;
  for (const auto& row : field_table())
    known.insert(row.name);
  const std::regex added(
      R"re((EventField\{|fields\.push_back\(\s*\{|\b(line|details)\.add(_text|_number)?\()"(\w+)")re");
  std::set<std::string> names;
  for (const auto& file :
       std::filesystem::recursive_directory_iterator(PAWL_SOURCE_DIR "/framework")) {
    if (file.path().extension() != ".cpp")
      continue;
    std::ifstream stream(file.path());
    const std::string text{std::istreambuf_iterator<char>(stream), {}};
    for (std::sregex_iterator found(text.begin(), text.end(), added), end; found != end; ++found)
      names.insert((*found)[4]);
  }
  CHECK(names.contains("retry_in_ms"));
  for (const auto& name : names) {
    CAPTURE(name);
    CHECK(known.contains(name));
  }
}

TEST_CASE("metrics, alert kinds, and fields have one row each") {
  std::set<std::string_view> names;
  for (const auto& row : metric_table()) {
    CAPTURE(row.name);
    CHECK(names.insert(row.name).second);
    CHECK((row.name.starts_with("pawl_") && is_word(row.name, '_')));
    CHECK((row.name.ends_with("_total") == (row.type == "counter")));
    CHECK(is_sentence(row.help));
  }
  for (const auto& row : alert_table()) {
    CAPTURE(row.kind);
    CHECK(names.insert(row.kind).second);
    CHECK(is_word(row.kind, '-'));
    CHECK(is_sentence(row.meaning));
  }
  for (const auto& row : field_table()) {
    CAPTURE(row.name);
    CHECK(names.insert(row.name).second);
    CHECK(is_word(row.name, '_'));
  }
}
