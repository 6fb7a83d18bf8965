#include "modes.hpp"

#include <algorithm>
#include <stdexcept>

namespace pawl::test {

// Flights and batches are short, so that what runs alone after each failure leaves something for
// them.
const std::vector<Mode>& modes() {
  static const std::string kReplayable = "consumer.durability=replayable";
  static const std::string kShortFlights = "consumer.pipeline=4";
  static const std::string kSmallBatches = "batch.max_messages=8";
  static const std::string kCode = "name = \"payment\"";
  static const std::vector<Mode> kModes{
      {"sql", "", {}},
      {"flights that count rows", "", {kShortFlights}, true},
      {"code", kCode, {}},
      {"code, replayable", kCode, {kReplayable}},
      {"flights", kFlightSql, {kShortFlights}, true},
      {"code flights", "name = \"statements\"", {kShortFlights}, true},
      {"flights, replayable", kFlightSql, {kShortFlights, kReplayable}, true},
      {"sql batches", kBatchSql, {kSmallBatches}, false, true},
      {"sql batches, replayable", kBatchSql, {kSmallBatches, kReplayable}, false, true},
      {"code batches", kBatchCode, {kSmallBatches}, false, true},
      {"sql side by side", kBesideSql, {}, false, false, true},
      {"code side by side, replayable", kBesideCode, {kReplayable}, false, false, true},
  };
  return kModes;
}

const Mode& mode(const std::string& name) {
  const auto found = std::ranges::find(modes(), name, &Mode::name);
  if (found == modes().end())
    throw std::logic_error("there is no mode " + name);
  return *found;
}

}  // namespace pawl::test
