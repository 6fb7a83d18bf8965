#include "script_server.hpp"

#include <chrono>
#include <sstream>

namespace pawl::test {
namespace {

constexpr std::chrono::seconds kStart{60};

std::vector<std::string> first(std::string word, std::vector<std::string> others) {
  others.insert(others.begin(), std::move(word));
  return others;
}

}  // namespace

ScriptServer::ScriptServer(const std::string& script, std::vector<std::string> arguments)
    : folder_("server"),
      process_("python3", first(script, std::move(arguments)), {.output = folder_.path() / "log"}) {
  process_.wait_for_output("PORT ", kStart);
  process_.wait_for_output("\n", kStart);
  std::string word;
  std::istringstream(process_.output()) >> word >> port_;
}

std::string ScriptServer::log() const {
  const auto all = process_.output();
  return all.substr(all.find('\n') + 1);
}

}  // namespace pawl::test
