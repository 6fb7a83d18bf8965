#pragma once

#include <pawl/options.hpp>

#include <string>
#include <vector>

#include "config/document.hpp"
#include "config/node_reader.hpp"
#include "config/option_table.hpp"

namespace pawl::config {

/// One option with its value and where that comes from, for a person to read.
struct OptionInForce {
  std::string option;  ///< "kafka.group", "kafka.librdkafka.client.id", "handler[0].on_failure"
  /// With "***" for what may be secret, and ${...} as it was written.
  Node value;
  std::string from;  ///< "default", "conf/payments.toml:12" or "--set kafka.group"
  std::string
      inherited;  ///< of a handler that says nothing itself: what counts, "failures.on_failure"
};

/// Every option in the order of the table, then those of each handler. `findings`: of reading them.
[[nodiscard]] std::vector<OptionInForce> options_in_force(const Options& options, OptionTable table,
                                                          const Findings& findings);

/// The value of a --set for people's eyes: *** where it may be secret, and ${...} as it was
/// written.
[[nodiscard]] std::string shown_override(const std::string& option, const std::string& value);

/// Whether the value of a property of librdkafka is known to be no secret.
[[nodiscard]] bool may_show_property(std::string_view name);

}  // namespace pawl::config
