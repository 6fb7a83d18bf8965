#include "ops/log_line.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string>

using namespace pawl::ops;

namespace {

LogLine halted() {
  LogLine line{spdlog::level::err, "partition_halted"};
  line.add_text("topic", "payments");
  line.add_number("partition", 7);
  line.add_number("lag", -1);
  line.add_text("handler", "");
  line.add("first_assignment", true);
  line.add_text("idempotency_key", "poison 2");
  line.text = "invalid input: \"12,50\". Fix the cause, then resume:\n  pawl partitions resume";
  return line;
}

}  // namespace

TEST_CASE("a line is its event, its fields, and its text") {
  CHECK(text_of(halted(), false) ==
        "partition_halted topic=payments partition=7 first_assignment=true "
        "idempotency_key=\"poison 2\": invalid input: \"12,50\". Fix the cause, then resume: pawl "
        "partitions resume");
  CHECK(text_of(LogLine{spdlog::level::info, "kafka_reachable"}, false) == "kafka_reachable");
}

TEST_CASE("on a terminal each command has a line of its own, and nothing else can begin one") {
  const auto text = text_of(halted(), true);
  CHECK(text.ends_with("then resume:\n  pawl partitions resume"));
  auto forged = halted();
  forged.text = "no\n2026-01-01T00:00:00.000+00:00 error partition_halted\x1b[2J\r\n\n x";
  CHECK(text_of(forged, true)
            .ends_with(": no\n  2026-01-01T00:00:00.000+00:00 error partition_halted [2J \n  x"));
  forged.add_text("key", "a\nb");
  CHECK(text_of(forged, true).find("key=\"a b\"") != std::string::npos);
}

TEST_CASE("a value that is not one word is quoted") {
  LogLine line{spdlog::level::info, "consumer_started"};
  line.add_text("a", "x=y");
  line.add_text("b", "say \"\\\"");
  line.add("c", std::string());
  CHECK(text_of(line, false) == R"(consumer_started a="x=y" b="say \"\\\"" c="")");
}

TEST_CASE("JSON has the same fields as the text, with group and instance") {
  const auto json = nlohmann::json::parse("{" + json_of(halted(), "billing", "vm:1"));
  CHECK(json == nlohmann::json({{"event", "partition_halted"},
                                {"msg",
                                 "invalid input: \"12,50\". Fix the cause, then resume: pawl "
                                 "partitions resume"},
                                {"group", "billing"},
                                {"instance", "vm:1"},
                                {"topic", "payments"},
                                {"partition", 7},
                                {"first_assignment", true},
                                {"idempotency_key", "poison 2"}}));
  CHECK(json_of(LogLine{spdlog::level::info, "relay_started"}, "", "vm:1") ==
        R"("event":"relay_started","instance":"vm:1"})");
}

TEST_CASE("the log is colored on a terminal, but not with NO_COLOR") {
  const int terminal = ::posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
  if (terminal < 0)
    SKIP("no pseudo-terminal can be opened here");
  REQUIRE(::grantpt(terminal) == 0);
  REQUIRE(::unlockpt(terminal) == 0);
  const int line = ::open(::ptsname(terminal), O_RDWR | O_NOCTTY | O_CLOEXEC);
  REQUIRE(line >= 0);

  const std::string no_color = GENERATE("", "1");
  CAPTURE(no_color);
  ::setenv("TERM", "xterm-256color", 1);
  ::setenv("NO_COLOR", no_color.c_str(), 1);
  const int errors = ::dup(STDERR_FILENO);
  ::dup2(line, STDERR_FILENO);
  LogWriter({}).write(LogLine{spdlog::level::warn, "kafka_unreachable"});
  ::dup2(errors, STDERR_FILENO);
  ::unsetenv("NO_COLOR");

  // A terminal may return a line in parts, as it was written.
  std::string written;
  std::array<char, 512> bytes{};
  while (written.find('\n') == std::string::npos) {
    const auto count = ::read(terminal, bytes.data(), bytes.size());
    REQUIRE(count > 0);
    written.append(bytes.data(), static_cast<std::size_t>(count));
  }
  CHECK(written.find("kafka_unreachable") != std::string::npos);
  CHECK((written.find("\x1b[") != std::string::npos) == no_color.empty());
  for (const int descriptor : {line, errors, terminal})
    ::close(descriptor);
}
