#include "group_of_processes.hpp"

#include <fmt/format.h>
#include <signal.h>

#include <fstream>
#include <sstream>
#include <stdexcept>

namespace pawl::test {

using namespace std::chrono_literals;

std::vector<Protocol> protocols() {
  std::ifstream file{testing::KafkaBroker::shared().folder() / "release"};
  std::string release;
  if (!(file >> release))
    throw std::runtime_error("scripts/services does not say which release the broker is");
  auto known = kProtocols;
  if (release.starts_with("3."))
    known.pop_back();
  return known;
}

testing::ChildProcess& GroupOfProcesses::join(std::vector<std::string> arguments) {
  members_.push_back(world_.start({.arguments = std::move(arguments)}));
  return *members_.back();
}

void GroupOfProcesses::retire(std::size_t index) {
  const auto at = members_.begin() + static_cast<std::ptrdiff_t>(index);
  gone_.push_back(std::move(*at));
  members_.erase(at);
}

void GroupOfProcesses::leave(std::size_t index) {
  members_.at(index)->kill(SIGTERM);
  require_clean_end(*members_.at(index));
  retire(index);
}

void GroupOfProcesses::require_clean_end(testing::ChildProcess& process) {
  const auto status = process.wait(40s);
  if (!status.success()) {
    throw std::runtime_error("leaving: " + to_string(status) + "\n" + process.output());
  }
}

void GroupOfProcesses::send_away_oldest() {
  members_.front()->kill(SIGTERM);
  leaving_.push_back(std::move(members_.front()));
  members_.pop_front();
}

void GroupOfProcesses::leave_all() {
  for (const auto& member : members_)
    member->kill(SIGTERM);
  while (!members_.empty()) {
    if (members_.front()->running()) {
      leave(0);
    } else {
      retire(0);
    }
  }
  for (auto& process : leaving_) {
    require_clean_end(*process);
    gone_.push_back(std::move(process));
  }
  leaving_.clear();
}

void GroupOfProcesses::kill(std::size_t index) {
  members_.at(index)->kill(SIGKILL);
  members_.at(index)->wait(60s);
  retire(index);
}

bool GroupOfProcesses::all_running() {
  for (const auto& member : members_) {
    if (!member->running())
      return false;
  }
  return true;
}

void GroupOfProcesses::wait_until_shared_by(int processes, std::chrono::milliseconds deadline) {
  const auto sql = fmt::format(
      "SELECT count(DISTINCT owner) FROM pawl.processed_kafka_offsets"
      " WHERE topic = '{}' AND NOT released HAVING count(*) = {}",
      world_.topic(), world_.broker().partition_count(world_.topic()));
  try {
    testing::wait_until([&] { return world_.value(sql) == std::to_string(processes); }, deadline,
                        fmt::format("{} processes to share the partitions", processes));
  } catch (const testing::Timeout& timeout) {
    throw testing::Timeout(fmt::format("{}\n{}", timeout.what(), problems()));
  }
}

int GroupOfProcesses::count_in(const testing::ChildProcess& process, const std::string& text) {
  const auto output = process.output();
  int found = 0;
  for (auto at = output.find(text); at != std::string::npos; at = output.find(text, at + 1))
    ++found;
  return found;
}

int GroupOfProcesses::count(const std::string& text) const {
  int found = 0;
  for (const auto& member : members_)
    found += count_in(*member, text);
  for (const auto& process : leaving_)
    found += count_in(*process, text);
  for (const auto& process : gone_)
    found += count_in(*process, text);
  return found;
}

std::string GroupOfProcesses::problems() const {
  std::string found;
  for (const auto& member : members_) {
    found += fmt::format("process {}:\n", member->pid());
    std::istringstream lines(member->output());
    for (std::string line; std::getline(lines, line);) {
      for (const auto* step : {"warning", "fenced", "halted", "failed", "disconnected", "FATAL"}) {
        if (line.find(step) != std::string::npos)
          found += "  " + line + "\n";
      }
    }
  }
  return found;
}

}  // namespace pawl::test
