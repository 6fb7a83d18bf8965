#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "cli/tail.hpp"
#include "handlers/router.hpp"
#include "kafka/client.hpp"
#include "pawl/handler.hpp"
#include "pawl/options.hpp"

namespace pawl::cli {

/// Reads from Kafka what a consumer has just passed, for a person's eyes: a few of each partition
/// and look. Over a client of its own, which never joins the group. One thread.
class PassedMessages {
 public:
  /// `values`: show them as well. Throws ConfigErrors for handlers that no code registered.
  PassedMessages(const Options& options, const Registry& registry, bool values);

  /// A line for each record between the two offsets that `advanced` has passed, up to twenty, and
  /// one for how many offsets were left out. What cannot be read is a line as well.
  [[nodiscard]] std::vector<TailLine> read(const TailLine& advanced);

 private:
  [[nodiscard]] TailLine describe(const TailLine& advanced, const Message& message) const;

  const Options& options_;
  const handlers::Router router_;
  const bool values_;
  std::unique_ptr<kafka::Client> client_;
};

}  // namespace pawl::cli
