#pragma once

#include <chrono>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "dead_letters/due_queue.hpp"
#include "dead_letters/letter_source.hpp"
#include "dead_letters/retrier.hpp"
#include "dead_letters/store/due_letters.hpp"
#include "dead_letters/store/view.hpp"
#include "engine/background_task.hpp"
#include "engine/bell.hpp"
#include "engine/context.hpp"
#include "engine/observers.hpp"
#include "postgres/session.hpp"

namespace pawl::engine {

/// Retries dead letters that are due (failures.retry_later) while a consumer runs: its thread finds
/// them, up to consumer.concurrency other threads retry them. Each process of a group does that;
/// the database gives a dead letter to one of them. Ends if no handler has the policy and no dead
/// letter waits.
class RetryTask final : public BackgroundTask {
 public:
  using Clock = std::chrono::steady_clock;

  explicit RetryTask(Context& context);
  /// Waits for the retries in progress.
  ~RetryTask() override;

  /// What is due then waits for the next process.
  void stop(Clock::time_point deadline, bool finish) override { bell_.stop(deadline, finish); }

 private:
  void run();
  void look_for_letters();
  bool pass();
  bool tell_waiting();
  bool connect();
  void add_retrier();
  void end_retriers();
  void end_reader();
  [[nodiscard]] FrameContext quiet_frame() const;

  Context& context_;
  Observers nobody_{{}};  ///< a letter's steps are no progress of its partition
  FrameContext frame_;
  RetryPolicies policies_;
  ledger::DueLetters letters_;
  ledger::DeadLetterView view_;
  std::mutex source_mutex_;
  /// The consumer's own client has the partitions of its group assigned, and no other. Exists while
  /// messages that are due may have to be read from Kafka; guarded by source_mutex_
  std::unique_ptr<kafka::Client> reader_;
  LetterSource source_;  // guarded by source_mutex_
  DueQueue queue_;
  std::vector<std::thread> retriers_;
  std::unique_ptr<postgres::Session> session_;
  bool idle_ = false;  ///< there is nothing to retry now or later
  Bell bell_;
  std::thread thread_;
};

}  // namespace pawl::engine
