#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "engine/acquisition.hpp"
#include "engine/checkpoint.hpp"
#include "engine/consequences.hpp"
#include "engine/context.hpp"
#include "engine/crash_loop.hpp"
#include "engine/mailbox.hpp"
#include "engine/message_processor.hpp"
#include "engine/own_marks.hpp"
#include "engine/partition.hpp"
#include "engine/positions.hpp"
#include "engine/probation.hpp"
#include "engine/runner.hpp"
#include "engine/side_by_side.hpp"
#include "engine/worker_session.hpp"

namespace pawl::engine {

/// One thread with one PostgreSQL connection that gives its partitions their turns, one after
/// another. Others talk to it through its mailbox.
class Worker {
 public:
  using Clock = std::chrono::steady_clock;

  /// `announces`: it keeps a session also without a partition, so that the process is known to run
  /// while it waits for Kafka, or has nothing to do (Presence).
  Worker(Context& context, bool announces);
  /// Waits for the thread; one that nobody has stopped is stopped without finishing its message.
  ~Worker();
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  // From the group thread:
  void assign(std::shared_ptr<kafka::PartitionStream> stream);
  /// `done` is called on the worker's thread once the partitions are finished and let go of.
  void revoke(std::vector<TopicPartition> partitions, std::function<void()> done);
  /// Finishes the message in hand, gives up connecting, releases everything, ends the thread.
  void stop();
  /// Breaks the PostgreSQL call in progress, if any.
  void interrupt() { session_.interrupt(); }
  [[nodiscard]] bool finished() const { return finished_.load(); }
  void join();

  // From any thread:
  void wake() { mailbox_.wake(); }
  /// The worker asks Kafka and the register again for all its partitions of the topic.
  void recheck(const std::vector<TopicPartition>& partitions);
  /// The partition's stream lost its position; it is sought again from the stored offset.
  void reposition(const TopicPartition& partition);
  /// What its messages waited for is free: they need not wait for longer.
  void lock_released(const TopicPartition& partition);
  [[nodiscard]] WorkerCall current_call() const { return session_.current_call(); }

 private:
  void run();
  bool work();
  bool turn(Partition& partition);
  void end();

  [[nodiscard]] Clock::time_point next_deadline() const;

  bool ensure_session();
  bool follow_end_of_session();
  void ask_all_again();
  void go_on_with_renewed();
  void let_go_of_stray_call();
  void poll_register();
  void compare(Partition& partition, const std::map<TopicPartition, ledger::Watched>& rows);
  [[nodiscard]] std::set<TopicPartition> name_session();
  void fenced(Partition& partition, bool by_operator);
  void tell_presence();
  void leave_presence();
  void make_checkpoint();
  void remove_marks();

  void release(Partition& partition);
  void drop(const TopicPartition& name, bool release_it);
  bool let_go(const TopicPartition& name);
  void finish_leaving();

  /// Partitions whose messages in the hands of others are waited for.
  struct Leaving {
    std::vector<TopicPartition> partitions;
    std::function<void()> done;
  };

  Context& context_;
  const bool announces_;
  WorkerSession session_;
  Positions positions_;
  MessageProcessor processor_;
  Consequences consequences_;
  OwnMarks marks_;
  Probation probation_;
  CrashLoop crash_loop_;
  Acquisition acquisition_;
  Runner runner_;
  SideBySide side_by_side_;
  Checkpoint checkpoint_;
  Acquisition::Partitions partitions_;
  Clock::time_point next_poll_{};
  /// The session replaced one that was left. Before anything begins on it, what is held is compared
  /// with the register: the server may be another one, and somebody may have acquired meanwhile.
  bool must_compare_ = false;
  Mailbox mailbox_;
  std::vector<Leaving> leaving_;
  bool stopping_ = false;  // worker thread only, set by a command

  std::atomic<bool> finished_{false};
  std::thread thread_;
};

}  // namespace pawl::engine
