#include "process_watch.hpp"

#include <fmt/format.h>
#include <signal.h>

#include <algorithm>
#include <exception>
#include <fstream>
#include <iostream>
#include <map>
#include <pawl/testing/occurrences.hpp>
#include <pawl/testing/wait.hpp>
#include <sstream>
#include <stdexcept>
#include <string>

namespace pawl::test {
namespace {

constexpr std::size_t kShown = 20000;

std::string end_of(const std::string& text) {
  return text.size() <= kShown ? text : "[...]" + text.substr(text.size() - kShown);
}

}  // namespace

bool is_stopped(int pid) {
  std::ifstream stat(fmt::format("/proc/{}/stat", pid));
  std::stringstream text;
  text << stat.rdbuf();
  // The program's name stands in parentheses before the state.
  const auto name_end = text.str().rfind(')');
  return name_end != std::string::npos && text.str().substr(name_end + 2, 1) == "T";
}

void wait_until_stopped(testing::ChildProcess& process, std::chrono::milliseconds deadline) {
  testing::wait_until(
      [&] {
        if (!process.running())
          throw std::runtime_error("it ended instead:\n" + process.output());
        return is_stopped(process.pid());
      },
      deadline, "the process to be stopped");
}

int occurrences(const testing::ChildProcess& process, const std::string& text) {
  return testing::occurrences(process.output(), text);
}

int longest_flight(const testing::ChildProcess& process) {
  std::istringstream lines(process.output());
  int longest = 0;
  // Of each partition: workers print between each other's lines.
  std::map<std::string, int> runs;
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string event;
    std::string step;
    std::string topic;
    std::string partition;
    if (!(words >> event >> step >> topic >> partition) || event != "EVENT")
      continue;
    // The monitor's word, at any time.
    if (step == "log_end_changed")
      continue;
    auto& run = runs[topic.append(" ").append(partition)];
    run = step == "commit_sent" ? run + 1 : 0;
    longest = std::max(longest, run);
  }
  return longest;
}

ShowOnFailure::ShowOnFailure(std::string name, const testing::ChildProcess& process)
    : name_(std::move(name)), process_(process), exceptions_(std::uncaught_exceptions()) {}

ShowOnFailure::~ShowOnFailure() {
  if (std::uncaught_exceptions() <= exceptions_)
    return;
  std::cerr << "---- output of " << name_ << " ----\n" << end_of(process_.output()) << "----\n";
}

void stop_cleanly(testing::ChildProcess& process) {
  process.kill(SIGTERM);
  const auto status = process.wait(std::chrono::seconds(40));
  if (status.success())
    return;
  throw std::runtime_error(
      fmt::format("stopping ended with {}:\n{}", to_string(status), end_of(process.output())));
}

}  // namespace pawl::test
