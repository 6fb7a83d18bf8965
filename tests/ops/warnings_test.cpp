#include <spdlog/sinks/ostream_sink.h>
#include <spdlog/spdlog.h>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <fstream>
#include <iterator>
#include <memory>
#include <set>
#include <sstream>
#include <string>

#include "ops/log_line.hpp"
#include "ops/step_lines.hpp"
#include "pawl/observer.hpp"

using pawl::Event;
using pawl::Step;
using pawl::Warning;

namespace {

std::set<std::string> all_codes() {
  std::set<std::string> codes;
  for (int i = 0; pawl::to_string(static_cast<Warning>(i)) != "unknown"; ++i)
    codes.emplace(pawl::to_string(static_cast<Warning>(i)));
  return codes;
}

/// The names in the first column of a section's table; `head` is that column's.
std::set<std::string> documented(const std::string& section, const std::string& head) {
  std::ifstream page(PAWL_SOURCE_DIR "/docs/runbook.md");
  std::set<std::string> names;
  bool in_section = false;
  bool here = false;
  for (std::string line; std::getline(page, line);) {
    if (line.starts_with("## "))
      in_section = line == "## " + section;
    here = line.starts_with("|") && (here || (in_section && line.starts_with("| " + head + " |")));
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

/// Steps that the log says at level warning or error by the name of their event.
std::set<std::string> loud_steps() {
  // What line_of() leaves to the log, which speaks of outages as a whole.
  std::set<std::string> names{"connected", "disconnected"};
  for (int i = 0; pawl::to_string(static_cast<Step>(i)) != "unknown"; ++i) {
    const auto step = static_cast<Step>(i);
    const auto line = pawl::ops::line_of(Event{step});
    if (step != Step::kWarning && line && line->level >= spdlog::level::warn)
      names.emplace(pawl::to_string(step));
  }
  return names;
}

/// What the log says of itself at those levels.
const std::set<std::string> kOfTheLog{"ended", "fatal", "not_reloaded", "repeated"};

}  // namespace

TEST_CASE("docs/runbook.md says of each warning what to do") {
  CHECK(all_codes().size() == static_cast<std::size_t>(Warning::kSequenceBehind) + 1);
  CHECK(documented("Warnings", "code") == all_codes());
}

TEST_CASE("docs/runbook.md says of each loud event what to do, and names no other") {
  auto events = loud_steps();
  CHECK(events.contains("outbox_refused"));
  events.insert(kOfTheLog.begin(), kOfTheLog.end());
  CHECK(documented("Warnings", "event") == events);
  std::ifstream file(PAWL_SOURCE_DIR "/framework/ops/log_observer.cpp");
  const std::string source{std::istreambuf_iterator<char>(file), {}};
  for (const auto& name : kOfTheLog)
    CHECK_THAT(source, Catch::Matchers::ContainsSubstring('"' + name + '"'));
}

TEST_CASE("a warning's code stands in the log's JSON, and before its text") {
  std::ostringstream out;
  spdlog::logger log("test", std::make_shared<spdlog::sinks::ostream_sink_st>(out));
  log.set_pattern("%v");
  pawl::ops::LogLine line;
  line.event = pawl::to_string(pawl::Step::kWarning);
  line.code = pawl::to_string(Warning::kNoRoom);
  line.level = spdlog::level::warn;
  line.text = "disk full";
  pawl::ops::write(log, pawl::LogFormat::kJson, "billing", line);
  pawl::ops::write(log, pawl::LogFormat::kText, "billing", line);
  CHECK(out.str() == R"("event":"warning","code":"no_room","group":"billing","detail":"disk full"})"
                     "\n[no_room] disk full\n");
}
