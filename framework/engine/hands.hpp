#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "engine/hand.hpp"

namespace pawl::engine {

/// Threads that run messages side by side, each with a PostgreSQL session: as many as there is work
/// for, up to consumer.concurrency. Messages begin in the order in which they were given. Any
/// thread.
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
  /// Nothing is connected any more.
  void stop();
  /// Breaks the PostgreSQL calls in progress.
  void interrupt();

  /// The hand is there as long as this is.
  [[nodiscard]] std::vector<std::shared_ptr<Hand>> all() const;

 private:
  void run(Hand& hand);

  Context& context_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Errand> waiting_;                // guarded by mutex_
  std::size_t idle_ = 0;                      // guarded by mutex_
  bool ending_ = false;                       // guarded by mutex_
  bool stopped_ = false;                      // guarded by mutex_
  std::vector<std::shared_ptr<Hand>> hands_;  // guarded by mutex_
  std::vector<std::thread> threads_;          // guarded by mutex_
};

}  // namespace pawl::engine
