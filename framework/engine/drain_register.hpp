#pragma once

#include <atomic>
#include <chrono>
#include <map>
#include <memory>

#include "engine/context.hpp"
#include "ledger/register_view.hpp"
#include "postgres/session.hpp"

namespace pawl::engine {

/// While draining: where partitions stand that this process had and has no more. The group's
/// thread, which waits for it no longer than for an answer of Kafka.
class DrainRegister {
 public:
  using Rows = std::map<TopicPartition, ledger::RegisterRow>;

  /// `unwanted`: set by any thread, ends the wait for a connection.
  DrainRegister(Context& context, const std::atomic<bool>& unwanted)
      : context_(context), unwanted_(unwanted) {}

  /// The register's rows as they were at most a second ago, and what they say is on disk; nullptr:
  /// PostgreSQL has not said.
  const Rows* rows();

 private:
  using Clock = std::chrono::steady_clock;

  void ask();

  Context& context_;
  const std::atomic<bool>& unwanted_;
  std::unique_ptr<postgres::Session> session_;
  Clock::time_point next_{};
  std::unique_ptr<Rows> rows_;
};

}  // namespace pawl::engine
