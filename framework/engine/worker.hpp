#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <thread>
#include <vector>

#include "engine/assigned_partition.hpp"
#include "engine/backoff.hpp"
#include "engine/batch_processor.hpp"
#include "engine/context.hpp"
#include "engine/failure.hpp"
#include "engine/message_flight.hpp"
#include "engine/message_processor.hpp"
#include "engine/positions.hpp"
#include "engine/verdict.hpp"

namespace pawl::engine {

/// What a worker is waiting for right now, for the monitor.
struct WorkerCall {
  bool active = false;
  std::chrono::steady_clock::time_point since{};
  std::chrono::milliseconds limit{0};  ///< the handler's timeout; zero: none of the message's
  std::optional<postgres::Backend> own;
  std::optional<postgres::Backend> previous_owner;
  TopicPartition partition;
};

/// One thread with one PostgreSQL connection that processes a set of partitions, one message or one
/// flight of messages at a time. Others talk to it through its mailbox. Every decision about a
/// message is made here.
class Worker {
 public:
  using Clock = std::chrono::steady_clock;

  explicit Worker(Context& context);
  /// Waits for the thread; one that nobody has stopped is stopped without finishing its message.
  ~Worker();
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  // From the group thread:
  void assign(std::shared_ptr<kafka::PartitionStream> stream);
  /// `done` is called on the worker's thread once the partitions are finished and let go of.
  void revoke(std::vector<TopicPartition> partitions, bool lost, std::function<void()> done);
  /// Finishes the message in hand, gives up connecting, releases everything, ends the thread.
  void stop();
  /// Breaks the PostgreSQL call in progress, if any.
  void interrupt();
  [[nodiscard]] bool finished() const { return finished_.load(); }
  void join();

  // From any thread:
  void wake();
  /// The worker asks Kafka and the register again for all its partitions of the topic.
  void recheck(const std::string& topic);
  /// The partition's stream lost its position; it is sought again from the stored offset.
  void reposition(const TopicPartition& partition);
  [[nodiscard]] WorkerCall current_call() const;

 private:
  using Partition = AssignedPartition;

  /// Records taken from a partition's stream at once.
  static constexpr std::size_t kTake = 64;

  // worker.cpp: the thread, its mailbox and its connection
  void run();
  bool serve_mailbox();
  bool post(std::function<void()> command);
  void close_mailbox();
  bool ensure_session();
  std::unique_ptr<postgres::Session> connect();
  void discard_session();
  [[nodiscard]] Failure why_failed();
  void renew_session();
  void lose_session(const std::string& why);
  void notice_lost_session(std::string_view what);
  void refuse_database();
  void poll_register();
  void tell_presence();
  void leave_presence();
  void make_durable();
  void note_durable(std::map<TopicPartition, std::int64_t> reached);
  void wait_for_work(Clock::time_point until);
  [[nodiscard]] Clock::time_point next_deadline() const;
  void release(Partition& partition);
  void drop(const TopicPartition& name, bool release_it);
  void begin_call(const Partition& partition, std::chrono::milliseconds limit);
  void begin_call(const TopicPartition& partition, std::optional<postgres::Backend> previous_owner,
                  std::chrono::milliseconds limit);
  void end_call();

  // worker_partitions.cpp: one partition's steps
  bool step(Partition& partition);
  void acquire(Partition& partition);
  void postpone(Partition& partition, const std::string& why);
  void prepare_acquires();
  void accept(Partition& partition, const Positioned& positioned);
  void refuse(Partition& partition, const Refused& refused);
  void position(Partition& partition);
  bool run_some(Partition& partition);
  bool take_more(Partition& partition, std::size_t most = kTake);
  static void taken_now(Partition& partition);
  bool check_first(Partition& partition, const kafka::Record& record);
  void process(Partition& partition, bool more_follows);
  void end_of_log(Partition& partition, const Partition::Item& item);
  void reached_end(Partition& partition, std::int64_t end);
  [[nodiscard]] static bool goes_back(const std::optional<std::int32_t>& before,
                                      const std::optional<std::int32_t>& epoch);

  // worker_stream_errors.cpp: errors in place of records
  void stream_error(Partition& partition, kafka::Record record);
  void position_refused(Partition& partition, const kafka::Record& record);
  void halt_unreadable(Partition& partition, const Partition::Item& item);

  // worker_flights.cpp: messages that travel to the server together
  bool fly(Partition& partition);
  void fill_flight(const Partition& partition, Clock::time_point until);
  void size_flights(Partition& partition, const MessageFlight::Landed& landed,
                    Clock::duration took) const;
  void land(Partition& partition, const MessageFlight::Landed& landed);
  [[nodiscard]] bool pipelines(const Partition& partition) const;
  // worker_batches.cpp: many messages in one transaction
  enum class BatchTurn {
    kNone,   ///< the head message is no batch's: it takes the way of single ones
    kRan,    ///< one transaction, or why there was none is dealt with
    kWaits,  ///< for more messages
  };
  BatchTurn run_batch(Partition& partition);
  [[nodiscard]] bool may_batch(const Partition& partition) const;
  enum class Filled {
    kGone,    ///< the partition is not running any more, or has nothing
    kPartly,  ///< with all that there is
    kFull,    ///< as much as a batch may hold
  };
  Filled fill_buffer(Partition& partition);
  [[nodiscard]] bool lingers(Partition& partition, Filled filled, std::size_t items);
  [[nodiscard]] static std::size_t messages_waiting(const Partition& partition);
  std::size_t collect_batch(const Partition& partition, Clock::time_point until);
  void apply_batch(Partition& partition, std::size_t items, Clock::time_point begun);
  [[nodiscard]] Attempt attempt_of_batch(const Partition& partition, Failure failure);

  // worker_probation.cpp: messages that may end the process
  void consider_probation(Partition& partition, const ledger::Acquired& acquired);
  RunGate::Pass ask_to_run(Partition& partition);
  bool mark_suspect(Partition& partition, const Partition::Item& item);
  void end_probation(Partition& partition, bool passed);

  // worker_failures.cpp: messages that cannot be applied
  void failed(Partition& partition, const Attempt& attempt);
  [[nodiscard]] Action verdict_on(const Partition& partition, const Attempt& attempt) const;
  [[nodiscard]] const FailureOptions& failure_options(const Attempt& attempt) const;
  [[nodiscard]] Attempt attempt_of(const Partition& partition, Undertaking what,
                                   Failure failure) const;
  void apply(Partition& partition, const Attempt& attempt, const Action& action);
  void tell(const Partition& partition, const Attempt& attempt, const Action& action) const;
  void wait(Partition& partition, Action::Wait wait);
  static void keep_company(Partition& partition, const Attempt& attempt, Action::Company company);
  void count_and_decide(Partition& partition, const Attempt& attempt);
  bool count_attempt(Partition& partition, std::int64_t offset);
  bool count_lost_connection(Partition& partition, const Partition::Item& item);
  void set_aside(Partition& partition, const Attempt& attempt);
  void halt_at_message(Partition& partition, const Attempt& attempt);
  void halt_program(Partition& partition, const Attempt& attempt);
  void halt_flood(Partition& partition, const Attempt& attempt);
  void wait_for_room(Partition& partition, const Failure& failure);
  void has_room(Partition& partition);
  void moved_past(Partition& partition, std::size_t items = 1, Clock::duration took = {});
  void forget_attempts(Partition& partition);
  [[nodiscard]] static ledger::Advance advance_of(const Partition& partition,
                                                  const Partition::Item& item,
                                                  const Message& message);
  void give_way(Partition& partition, std::string_view why = "another owner has the partition");
  void acquire_again(Partition& partition, bool must_prove);
  /// `retry_after`: it is tried again by itself, without losing its place.
  void halt(Partition& partition, const ledger::Halt& halt,
            std::optional<std::chrono::milliseconds> retry_after = std::nullopt);
  void rest(Partition& partition, Clock::duration time);
  void stop_fetching(Partition& partition);
  void emit(Step step, const Partition& partition, std::int64_t offset,
            std::string_view detail = {},
            std::optional<std::int64_t> message_offset = std::nullopt) const;
  void emit_failed(const Partition& partition, std::int64_t offset, const Failure& failure) const;

  Context& context_;
  Positions positions_;
  MessageProcessor processor_;
  MessageFlight flight_;
  BatchProcessor batches_;
  std::unique_ptr<postgres::Session> session_;  // replaced under session_mutex_
  /// Being set up by the application's functions; guarded by session_mutex_
  postgres::Session* setting_up_ = nullptr;
  mutable std::mutex session_mutex_;
  Backoff connect_backoff_;
  Clock::time_point connect_not_before_{};
  bool session_was_lost_ = false;
  bool database_refused_ = false;  ///< and said so
  Clock::time_point next_poll_{};
  Clock::time_point next_durable_{};
  std::map<TopicPartition, std::unique_ptr<Partition>> partitions_;
  /// Message halts that this process has tried once already.
  std::set<std::pair<TopicPartition, std::int64_t>> tried_halts_;

  mutable std::mutex mailbox_mutex_;
  std::condition_variable mailbox_changed_;
  std::deque<std::function<void()>> mailbox_;  // guarded by mailbox_mutex_
  bool woken_ = false;                         // guarded by mailbox_mutex_
  bool mailbox_closed_ = false;                // guarded by mailbox_mutex_
  bool stopping_ = false;                      // worker thread only, set by a command

  mutable std::mutex call_mutex_;
  WorkerCall call_;  // guarded by call_mutex_

  std::atomic<bool> stop_asked_{false};
  std::atomic<bool> finished_{false};
  std::thread thread_;
};

}  // namespace pawl::engine
