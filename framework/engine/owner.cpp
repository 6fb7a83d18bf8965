#include "engine/owner.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <random>

namespace pawl::engine {

std::string make_owner() {
  char host[256] = "unknown-host";
  ::gethostname(host, sizeof host - 1);
  std::random_device random;
  return fmt::format("{}:{}:{:08x}", host, ::getpid(), random());
}

}  // namespace pawl::engine
