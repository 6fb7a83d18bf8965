// Programs of the user's, run for real.
#include <sys/types.h>
#include <csignal>
#include <fstream>
#include <thread>

#include "prelude.hpp"
#include "process/program.hpp"

using pawl::process::command_problem;
using pawl::process::Program;

namespace {

std::vector<std::string> shell(const std::string& script) {
  return {"/bin/sh", "-c", script};
}

Program::Outcome run(const std::string& script, std::size_t most_output = 100,
                     const Program::Input& input = {}) {
  return Program(shell(script), 20s, most_output).run(input);
}

bool lives(const std::filesystem::path& pid_file) {
  pid_t pid = 0;
  std::ifstream(pid_file) >> pid;
  return pid > 0 && ::kill(pid, 0) == 0;
}

}  // namespace

TEST_CASE("what a program prints comes back, and what it writes to stderr does not") {
  const auto outcome = run("echo hunter2; echo other >&2");
  CHECK(outcome.problem.empty());
  CHECK(outcome.output == "hunter2\n");
  CHECK(run("printf 'a\\nb'").output == "a\nb");
  CHECK(run("cat", 100, {.text = "given"}).output == "given");
  CHECK(
      run("echo $PAWL_A$PAWL_B", 100, {.environment = {{"PAWL_A", "1"}, {"PAWL_B", "2"}}}).output ==
      "12\n");
  // More than a pipe holds.
  const auto large = run("head -c 300000 /dev/zero", 300000);
  CHECK(large.problem.empty());
  CHECK(large.output.size() == 300000);
  CHECK(run("echo dropped", 0).output.empty());
}

TEST_CASE("a program that fails is told by its end, without anything that it wrote") {
  struct Row {
    std::string script;
    std::string problem;
  };
  const auto row = GENERATE(values<Row>({
      {"echo hunter2; exit 3", "it exited with code 3"},
      {"echo hunter2; kill -9 $$", "it was terminated by signal 9"},
      {"head -c 101 /dev/zero", "it wrote more than 100 bytes, and was killed"},
      {"exec yes hunter2", "it wrote more than 100 bytes, and was killed"},
  }));
  INFO(row.script);
  const auto outcome = run(row.script);
  CHECK(outcome.problem == row.problem);
  CHECK(outcome.output.empty());
  CHECK(Program({"/no/such/program"}, 20s, 100).run({}).problem ==
        "it cannot be started: No such file or directory");
}

TEST_CASE("a program that does not end is killed with all that it started") {
  const TempDir folder;
  const auto child = (folder.path() / "child").string();
  const auto script = "sleep 600 & echo $! >" + child + "; wait";
  SECTION("by its timeout") {
    CHECK(Program(shell(script), 300ms, 100).run({}).problem ==
          "it did not exit in time, and was killed");
  }
  SECTION("once its result is no longer needed") {
    std::atomic<bool> unwanted = false;
    std::thread other([&] {
      wait_until([&] { return lives(child); }, 20s, "the program to run");
      unwanted = true;
    });
    CHECK(Program(shell(script), 600s, 100).run({.unwanted = &unwanted}).problem ==
          "it was killed, because its result is no longer needed");
    other.join();
  }
  SECTION("by a deadline that comes while it runs") {
    Program program(shell(script), 600s);
    std::thread other([&] {
      wait_until([&] { return lives(child); }, 20s, "the program to run");
      program.end_by(Program::Clock::now());
    });
    CHECK(program.run({}).problem == "it did not exit in time, and was killed");
    other.join();
  }
  wait_until([&] { return !lives(child); }, 20s, "the end of what the program started");
}

TEST_CASE("a child that continues in the background delays nothing") {
  const TempDir folder;
  const auto child = (folder.path() / "child").string();
  const auto outcome = run("sleep 600 & echo $! >" + child + "; echo done");
  CHECK(outcome.problem.empty());
  CHECK(outcome.output == "done\n");
  pid_t pid = 0;
  std::ifstream(child) >> pid;
  REQUIRE(pid > 0);
  ::kill(pid, SIGKILL);
}

TEST_CASE("a command that cannot be run is told by its option") {
  CHECK(command_problem("a.b", {}).empty());
  CHECK(command_problem("a.b", {"/bin/sh", "hunter2"}).empty());
  CHECK(command_problem("a.b", {"/no/such", "hunter2"}) ==
        "a.b cannot be run: /no/such: No such file or directory. Fix the path, or run chmod +x");
  CHECK(command_problem("a.b", {"/tmp"}) ==
        "a.b cannot be run: /tmp: it is not a file. Fix the path, or run chmod +x");
}
