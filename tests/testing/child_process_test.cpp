#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <system_error>

#include "prelude.hpp"

TEST_CASE("wait_until returns at once when the condition holds, and names it when it never does") {
  int asked = 0;
  wait_until([&] { return ++asked == 3; }, 60s, "the third question");
  CHECK(asked == 3);
  CHECK_THROWS_WITH(wait_until([] { return false; }, 10ms, "the impossible"),
                    ContainsSubstring("waited 10 ms for the impossible"));
  CHECK_THROWS_AS(wait_until([]() -> bool { throw std::logic_error{"x"}; }, 1s, "a throw"),
                  std::logic_error);
}

TEST_CASE("a temporary folder goes with its object, and not with one that was moved from") {
  std::filesystem::path path;
  {
    TempDir first{"first"};
    path = first.path();
    const TempDir second{std::move(first)};
    std::ofstream{second.path() / "file"} << "text";
    CHECK(second.path() == path);
    CHECK(std::filesystem::exists(path / "file"));
  }
  CHECK_FALSE(std::filesystem::exists(path));
}

TEST_CASE("a temporary folder lies in PAWL_TEST_DIR") {
  const TempDir parent;
  const char* earlier = std::getenv("PAWL_TEST_DIR");
  const std::string restored = earlier == nullptr ? "" : earlier;
  setenv("PAWL_TEST_DIR", (parent.path() / "new").c_str(), 1);
  {
    const TempDir inner;
    CHECK(inner.path().parent_path() == parent.path() / "new");
  }
  setenv("PAWL_TEST_DIR", restored.c_str(), 1);
}

TEST_CASE("a child gets its arguments, environment and folder, and tells how it ended") {
  const TempDir folder;
  ChildOptions options;
  options.output = folder.path() / "output";
  options.working_directory = folder.path();
  options.environment = {{"PAWL_GIVEN", "a value"}, {"HOME", std::nullopt}};
  ChildProcess child{"sh",
                     {"-c", "echo \"$1|$PAWL_GIVEN|${HOME-none}|$PWD\"; echo to stderr >&2; exit 7",
                      "sh", "an argument"},
                     options};
  CHECK(child.wait(10s) == ExitStatus{7, std::nullopt});
  CHECK(child.output() == "an argument|a value|none|" + folder.path().string() + "\nto stderr\n");
  CHECK_FALSE(child.running());
  child.kill(SIGKILL);  // nobody any more: no error
  CHECK(to_string(child.wait(1s)) == "exit code 7");
}

TEST_CASE("a child can be stopped, continued and killed") {
  const TempDir folder;
  ChildOptions options;
  options.output = folder.path() / "output";
  ChildProcess child{"sh", {"-c", "echo ready; exec cat /dev/zero > /dev/null"}, options};
  child.wait_for_output("ready", 10s);
  CHECK_THROWS_AS(child.wait(20ms), Timeout);
  child.kill(SIGSTOP);
  CHECK(child.running());
  child.kill(SIGCONT);
  child.kill(SIGKILL);
  CHECK(child.wait(10s) == ExitStatus{std::nullopt, SIGKILL});
}

TEST_CASE("a child does not outlive its object") {
  pid_t pid = 0;
  {
    const ChildProcess child{"sleep", {"600"}};
    pid = child.pid();
    REQUIRE(::kill(pid, 0) == 0);
  }
  CHECK(::kill(pid, 0) == -1);
}

TEST_CASE("waiting for output of a child that ended says so at once, with what it wrote") {
  const TempDir folder;
  ChildOptions options;
  options.output = folder.path() / "output";
  ChildProcess child{"sh", {"-c", "echo the reason; exit 3"}, options};
  CHECK_THROWS_WITH(child.wait_for_output("ready", 60s),
                    ContainsSubstring("exit code 3") && ContainsSubstring("the reason"));
}

TEST_CASE("a program that does not exist is an error of the start") {
  CHECK_THROWS_AS((ChildProcess{"/nowhere/program", {}}), std::system_error);
}

TEST_CASE("a script's output is returned, and its complaint is thrown") {
  CHECK(run_script("printf", {"one\ntwo\n\n"}) == "one\ntwo");
  CHECK_THROWS_WITH(run_script("sh", {"-c", "echo broken >&2; exit 5"}),
                    ContainsSubstring("exit code 5") && ContainsSubstring("broken"));
}
