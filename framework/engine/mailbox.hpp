#pragma once

#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>

namespace pawl::engine {

/// What others want of a thread: commands, in the order in which they were posted, and the word
/// that there is something to look at. One thread serves it, any may write to it.
class Mailbox {
 public:
  using Clock = std::chrono::steady_clock;
  using Command = std::function<void()>;

  /// False: it is closed, and the command is let go of with all that it holds.
  bool post(Command command);
  /// The same of what need not call the thread away from what it does.
  bool post_note(Command note);
  /// Ends a wait() without a command.
  void wake();
  /// There are commands, notes not counted.
  [[nodiscard]] bool has_mail() const;

  // The thread that serves it:
  /// Runs what was posted so far, notes first. A command may post more, which the next call runs.
  void serve();
  /// False: there were none.
  bool serve_notes();
  /// Serves what was posted so far and takes nothing more.
  void close();
  /// Until there is mail, somebody calls wake(), or the time has come.
  void wait(Clock::time_point until);

 private:
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Command> commands_;  // guarded by mutex_
  std::deque<Command> notes_;     // guarded by mutex_
  bool woken_ = false;            // guarded by mutex_
  bool closed_ = false;           // guarded by mutex_
};

}  // namespace pawl::engine
