#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "engine/hand.hpp"
#include "engine/unstored.hpp"

namespace pawl::engine {

/// Runs messages side by side, on threads that are made when there is work for them. Each message
/// takes a hand, a PostgreSQL session, of which there are up to consumer.concurrency; a leased
/// handler's lets go of it while its call runs, of which there are up to calls.max_in_flight.
/// Messages begin in the order in which they were given, those with calls by themselves, and a
/// suspect before all others, because no code runs elsewhere while it waits. Behind a lock one call
/// of a partition is stored at a time, with pauses: the hands are there for others. Any thread.
class Hands {
 public:
  explicit Hands(Context& context) : context_(context) {}
  /// Ends the threads; what no thread has begun is let go of.
  ~Hands();
  Hands(const Hands&) = delete;
  Hands& operator=(const Hands&) = delete;

  void give(Errand errand);
  /// What no hand has begun of this partition lands at once, to be run later. On the caller's
  /// thread.
  void take_back(const HeldPartition* partition);
  /// Nothing is connected any more; calls whose outcome cannot be stored are let go of.
  void stop();
  /// Breaks the PostgreSQL calls in progress.
  void interrupt();
  /// What calls of the partition waited for, to be stored, is free.
  void lock_released(const TopicPartition& partition);

  /// The hand is there as long as this is.
  [[nodiscard]] std::vector<std::shared_ptr<Hand>> all() const;

 private:
  using Clock = std::chrono::steady_clock;
  using Errands = std::deque<Errand>;

  /// Calls of a partition that have run.
  struct EndingCalls {
    std::size_t count = 0;
    Unstored unstored;
  };

  void run();
  [[nodiscard]] bool suspect_waits() const { return !waiting_.empty() && waiting_.front().alone; }
  [[nodiscard]] bool may_call(const Errand& errand) const;
  [[nodiscard]] Errands::const_iterator next_call() const;
  [[nodiscard]] bool may_begin() const;
  [[nodiscard]] std::size_t most_threads() const;
  void begin_one(std::unique_lock<std::mutex>& lock);
  void run_leased(const Errand& errand, std::shared_ptr<Hand> hand);
  Landing end_call(const Errand& errand, LeasedCall& call);
  Landing end_call(std::unique_lock<std::mutex>& lock, const Errand& errand, LeasedCall& call,
                   Unstored& unstored);
  Unstored::Turn wait_for_turn(std::unique_lock<std::mutex>& lock, const Errand& errand,
                               const LeasedCall& call, Unstored& unstored, Unstored::Call& waiting);
  std::shared_ptr<Hand> take_hand();
  void put_down(std::shared_ptr<Hand> hand);
  [[nodiscard]] bool has_hand() const;
  void wake();

  Context& context_;
  mutable std::mutex mutex_;
  std::condition_variable work_;       ///< threads without a message wait for may_begin()
  std::condition_variable hand_free_;  ///< those with a call that has run, for has_hand()
  std::condition_variable stopping_;   ///< whoever waits for a connection
  std::condition_variable turns_;      ///< those with a call that has run, for wait_for_turn()
  // All of it guarded by mutex_:
  Errands waiting_;
  Errands leased_;                               ///< those that wait for a call
  std::size_t calls_ = 0;                        ///< messages with calls that are begun
  std::map<std::string, std::size_t> calls_to_;  ///< of them, by LeasedHandler::remote()
  std::size_t ending_calls_ = 0;  ///< calls that have run, may be stored and wait for a hand
  /// Without those that have no such call. Of one partition there are several once it was acquired
  /// anew meanwhile.
  std::map<const HeldPartition*, EndingCalls> unstored_;
  std::size_t idle_ = 0;  ///< threads
  bool ending_ = false;
  bool stopped_ = false;
  std::vector<std::shared_ptr<Hand>> hands_;
  std::vector<std::shared_ptr<Hand>> free_;  ///< of them; the one used last is taken first
  std::vector<std::thread> threads_;
};

}  // namespace pawl::engine
