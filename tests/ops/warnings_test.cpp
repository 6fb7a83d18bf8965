#include <spdlog/sinks/ostream_sink.h>
#include <spdlog/spdlog.h>

#include <catch2/catch_test_macros.hpp>
#include <fstream>
#include <memory>
#include <set>
#include <sstream>
#include <string>

#include "ops/log_line.hpp"
#include "pawl/observer.hpp"

using pawl::Warning;

namespace {

std::set<std::string> all_codes() {
  std::set<std::string> codes;
  for (int i = 0; pawl::to_string(static_cast<Warning>(i)) != "unknown"; ++i)
    codes.emplace(pawl::to_string(static_cast<Warning>(i)));
  return codes;
}

/// The first column of the table of warnings.
std::set<std::string> documented_codes() {
  std::ifstream page(PAWL_SOURCE_DIR "/docs/runbook.md");
  std::set<std::string> codes;
  bool here = false;
  for (std::string line; std::getline(page, line);) {
    if (line.starts_with("## "))
      here = line == "## Warnings";
    if (here && line.starts_with("| `"))
      codes.insert(line.substr(3, line.find('`', 3) - 3));
  }
  return codes;
}

}  // namespace

TEST_CASE("docs/runbook.md says of each warning what to do") {
  CHECK(all_codes().size() == static_cast<std::size_t>(Warning::kKeysHeld) + 1);
  CHECK(documented_codes() == all_codes());
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
