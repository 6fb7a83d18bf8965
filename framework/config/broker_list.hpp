#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace pawl::config {

/// Why a text is no list of brokers, and what to write instead; without the text itself, which may
/// be secret.
struct BrokerListProblem {
  std::string what;
  std::string fix;
};

/// Of kafka.bootstrap_servers: "host", "host:port" or "[IPv6 address]:port", separated by commas.
/// librdkafka's "protocol://" before the host is refused: it must repeat security.protocol, and a
/// broker with any other is left out with no more than a line in the log.
[[nodiscard]] std::optional<BrokerListProblem> broker_list_problem(std::string_view text);

/// Each broker of a list without a problem once, with its port, and without blanks: as librdkafka
/// and Kafka's own tools read it. A broker without a port has 9092, librdkafka's default.
[[nodiscard]] std::string normal_broker_list(std::string_view text);

}  // namespace pawl::config
