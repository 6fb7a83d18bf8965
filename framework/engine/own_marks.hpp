#pragma once

#include <set>

#include "engine/context.hpp"
#include "engine/partition.hpp"
#include "engine/worker_session.hpp"

namespace pawl::engine {

/// This process' marks: that a message runs alone (engine/probation.hpp), that a partition is
/// fetched alone (engine/crash_loop.hpp). One that is there when the process ends counts as a
/// crash. So one that cannot be removed is remembered, and removed on the next session, or over a
/// new connection when the process ends in order. One worker's.
class OwnMarks {
 public:
  OwnMarks(Context& context, WorkerSession& session) : context_(context), session_(session) {}

  /// The process has survived what is marked. `passed`: a message, which is behind.
  void remove(const Partition& partition, bool passed = false);
  /// The same of a partition that has left.
  void remove_after_leaving(const TopicPartition& partition);
  /// Whether a mark was left is unknown.
  void remember(const Partition& partition) { left_.insert(partition.name()); }

  [[nodiscard]] bool any_left() const { return !left_.empty(); }
  /// On a new session.
  void remove_left();
  /// At an orderly end. False: they cannot be removed now.
  [[nodiscard]] bool remove_left_at_end();

 private:
  void remove_left(postgres::Session& session);

  Context& context_;
  WorkerSession& session_;
  std::set<TopicPartition> left_;  ///< their marks may be committed under this process' name
};

}  // namespace pawl::engine
