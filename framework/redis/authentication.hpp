#pragma once

#include <vector>

#include "redis/reply.hpp"
#include "redis/settings.hpp"

namespace pawl::redis {

/// AUTH, if there is a password.
inline void add_authentication(const Credentials& credentials, std::vector<Command>& commands) {
  if (credentials.password.empty())
    return;
  if (credentials.user.empty()) {
    commands.push_back({"AUTH", credentials.password});
  } else {
    commands.push_back({"AUTH", credentials.user, credentials.password});
  }
}

}  // namespace pawl::redis
