#pragma once

#include <map>
#include <string>
#include <vector>

namespace pawl::cli {

/// What --set said to `init`, as it stands in the file that it writes.
struct InitSettings {
  /// By section ("kafka", "kafka.librdkafka") and name the value, as TOML has it.
  std::map<std::string, std::map<std::string, std::string>> sections;
  /// Environment variables that stand for what may be secret.
  std::vector<std::string> variables;
};

/// Of texts as after --set that can be read. Texts that `config show` would not print stand as
/// ${NAME}: "kafka.librdkafka.sasl.password=x" as ${KAFKA_SASL_PASSWORD}.
[[nodiscard]] InitSettings settings_of(const std::vector<std::string>& set);

}  // namespace pawl::cli
