#pragma once

#include <fstream>
#include <sstream>
#include <stdexcept>
#include <string>

#include "redis/reply.hpp"

namespace pawl::test {

/// The line of docs/external-calls-redis.md that creates the ACL user "pawl" with the password
/// "secret", as a command.
inline redis::Command documented_user() {
  std::ifstream file(std::string(PAWL_SOURCE_DIR) + "/docs/external-calls-redis.md");
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with("user pawl "))
      continue;
    std::istringstream words(line.substr(5));
    redis::Command command{"ACL", "SETUSER"};
    for (std::string word; words >> word;)
      command.push_back(word);
    return command;
  }
  throw std::runtime_error("docs/external-calls-redis.md has no line for an ACL user");
}

}  // namespace pawl::test
