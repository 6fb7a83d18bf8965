#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>

#include "engine/acquisition.hpp"
#include "engine/context.hpp"
#include "engine/worker_session.hpp"

namespace pawl::engine {

/// With Durability::kReplayable COMMIT does not wait for the disk: from time to time this does, for
/// all that the session has committed before, and notes of each partition how far it is on disk.
/// With the other durability there is nothing to do. One worker's.
class Checkpoint {
 public:
  using Clock = std::chrono::steady_clock;

  Checkpoint(Context& context, WorkerSession& session) : context_(context), session_(session) {}

  /// When it wants to be called next; nullopt: never.
  [[nodiscard]] std::optional<Clock::time_point> due() const;

  /// Does it when it is due. Returns a partition that the register says is not ours any more: then
  /// nothing is on disk.
  Partition* make(const Acquisition::Partitions& partitions);

  /// A commit that waited for the disk has just released this partition over the same connection.
  /// May throw whatever goes wrong.
  void released(Partition& partition);

 private:
  using Reached = std::map<TopicPartition, std::int64_t>;

  [[nodiscard]] bool wanted() const {
    return context_.options.consumer.durability == Durability::kReplayable;
  }
  [[nodiscard]] Reached on_disk(Reached reached);

  Context& context_;
  WorkerSession& session_;
  Clock::time_point next_{};
};

}  // namespace pawl::engine
