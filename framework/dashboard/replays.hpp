#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "pawl/handler.hpp"
#include "pawl/options.hpp"

namespace pawl::dashboard {

/// What a form has brought: done, or why not.
struct Outcome {
  bool done = false;         ///< of a replay: the letter is resolved by it
  std::string sentence;      ///< for people
  bool needs_force = false;  ///< a replay whose key may be gone
};

/// Replays letters, one at a time, on a thread of its own: a page waits for it for some seconds and
/// no longer. Any thread.
class Replays {
 public:
  /// Both outlive it.
  Replays(const Options& options, const Registry& registry)
      : options_(options), registry_(registry) {}
  ~Replays();
  Replays(const Replays&) = delete;
  Replays& operator=(const Replays&) = delete;

  /// `reason` is kept in the history before anything is done. `force`: also where its key may be
  /// gone. False: another one goes on.
  [[nodiscard]] bool begin(std::int64_t letter, const std::string& reason, bool force);
  /// Nullopt: it goes on, and what becomes of it the letter's page will say.
  std::optional<Outcome> wait(std::int64_t letter);
  /// What the one that goes on has to tell meanwhile; empty: nothing.
  [[nodiscard]] std::string news();

  /// Begins no more. False: one still goes on after some seconds, and the destructor waits for it.
  bool finish();

  static constexpr std::chrono::seconds kPatience{10};

 private:
  std::thread start(std::int64_t letter, const std::string& reason, bool force);
  Outcome replay(std::int64_t letter, const std::string& reason, bool force);

  const Options& options_;
  const Registry& registry_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool ending_ = false;  // guarded by mutex_, as the following
  std::optional<std::int64_t> running_;
  std::optional<std::int64_t> ended_of_;  ///< whose outcome `ended_` is
  Outcome ended_;
  std::string news_;
  std::thread thread_;
};

}  // namespace pawl::dashboard
