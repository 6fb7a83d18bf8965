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

std::string place_kept_text(const KafkaOptions& options) {
  const auto timeout =
      options.group_protocol == GroupProtocol::kClassic
          ? fmt::format("kafka.session_timeout ({} s)", options.session_timeout.count() / 1000)
          : std::string("the broker's group.consumer.session.timeout.ms");
  return timeout + ", and for longer if another member crashes in that time";
}

}  // namespace pawl::engine
