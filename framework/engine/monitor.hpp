#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "engine/call_watch.hpp"
#include "engine/conditions.hpp"
#include "engine/context.hpp"
#include "engine/coverage.hpp"
#include "engine/hands.hpp"
#include "engine/pulse.hpp"
#include "engine/worker.hpp"

namespace pawl::engine {

/// The thread that may wait for Kafka and PostgreSQL while the group thread and the workers do not:
/// it looks for recreated topics, asks for the logs' ends, and for sessions of stopped processes
/// that hold locks we wait for. Owned by the supervisor; stops in its destructor.
class Monitor {
 public:
  /// `assigned_once`: Kafka has said what is this process's, if only that nothing is.
  Monitor(Context& context, const std::vector<std::unique_ptr<Worker>>& workers, Hands& hands,
          Pulse& pulse, const std::atomic<bool>& assigned_once);
  ~Monitor();
  Monitor(const Monitor&) = delete;
  Monitor& operator=(const Monitor&) = delete;

  /// Whether the group leaves out nothing of what this process asks for, as far as can be known.
  /// Any thread.
  [[nodiscard]] bool covered() const { return covered_; }

 private:
  using Clock = std::chrono::steady_clock;

  void run();
  void check_topics();
  void tell_refusal(const std::string& topic);
  void tell_ambiguous();
  void ask_log_ends();
  void look_at_coverage();
  [[nodiscard]] std::vector<Condition> conditions() const;
  [[nodiscard]] std::int64_t waiting_in(const TopicPartition& partition,
                                        std::int64_t messages) const;
  void tell_conditions();
  void check_calls();
  void check_call(const void* whose, const WorkerCall& call,
                  const std::function<void()>& interrupt);
  [[nodiscard]] std::optional<PreviousOwner> suspect(const WorkerCall& call);
  void end_stalled_owner(const WorkerCall& call);
  void ask_who_blocks(const WorkerCall& call);
  void look_at_blockers();
  void warn(Warning warning, const std::string& text, const TopicPartition& partition) const;

  Context& context_;
  const std::vector<std::unique_ptr<Worker>>& workers_;
  Hands& hands_;
  Pulse& pulse_;
  const std::atomic<bool>& assigned_once_;
  std::atomic<bool> covered_;
  Coverage coverage_;
  bool covered_once_ = false;
  std::set<std::string> refused_;    ///< topics, as told
  std::set<std::string> ambiguous_;  ///< topics, as told
  std::unique_ptr<postgres::Session> session_;
  CallWatch calls_;
  ConditionWatch conditions_;

  std::atomic<bool> stopping_{false};
  std::thread thread_;
};

}  // namespace pawl::engine
