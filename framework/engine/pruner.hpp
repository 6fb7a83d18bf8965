#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "engine/context.hpp"
#include "engine/pruning.hpp"
#include "postgres/session.hpp"

namespace pawl::engine {

/// Removes what retention lets go while a consumer runs, on a thread and a connection of its own:
/// a pass may take minutes. Owned by the supervisor; the thread begins with the object.
class Pruner {
 public:
  explicit Pruner(Context& context);
  /// Waits for the transaction in hand.
  ~Pruner();
  Pruner(const Pruner&) = delete;
  Pruner& operator=(const Pruner&) = delete;

  /// Begins to end; from any thread.
  void stop();

 private:
  void run();
  void pass();
  bool pause(std::chrono::milliseconds time);
  void tell(const PruningReport& report);
  void warn_once(const std::string& about, const std::string& text);
  void emit(Step step, const std::string& text) const;

  Context& context_;
  std::unique_ptr<postgres::Session> session_;
  std::map<std::string, std::string> warned_;  ///< by what it was about

  std::mutex mutex_;
  std::condition_variable changed_;
  std::atomic<bool> stopping_{false};  // changes under mutex_
  std::thread thread_;
};

}  // namespace pawl::engine
