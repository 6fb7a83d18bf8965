#pragma once

#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include "engine/backoff.hpp"
#include "engine/context.hpp"
#include "engine/failure.hpp"
#include "engine/previous_owners.hpp"
#include "engine/verdict.hpp"
#include "postgres/session.hpp"

namespace pawl::engine {

inline constexpr const char* kReadOnlyServer =
    "the server is read-only: it is a standby, or default_transaction_read_only is on";

/// What a worker is waiting for right now, for the monitor.
struct WorkerCall {
  bool active = false;
  std::chrono::steady_clock::time_point since{};
  std::chrono::milliseconds limit{0};  ///< the handler's timeout; zero: none of the message's
  std::optional<postgres::Backend> own;
  std::optional<PreviousOwner> previous_owner;
  TopicPartition partition;
};

/// The session of one worker: made, lost and made again, and watched while somebody waits on it.
/// Used by the worker's thread, but for what is said to be for others.
class WorkerSession {
 public:
  using Clock = std::chrono::steady_clock;

  /// Of the hands: their sessions can be told from others, for whoever takes their partitions, and
  /// say nothing when they come and go.
  enum class Whose { kWorker, kHand };
  explicit WorkerSession(Context& context, Whose whose = Whose::kWorker);
  WorkerSession(const WorkerSession&) = delete;
  WorkerSession& operator=(const WorkerSession&) = delete;

  enum class State {
    kNone,  ///< and it is not time to try, see next_try()
    kNew,   ///< whatever was read before may be newer than what this server has
    kSame,
  };
  /// Sees to it that there is a live session.
  State ensure();
  [[nodiscard]] Clock::time_point next_try() const { return connect_not_before_; }
  /// It was lost, and nobody has found out whether PostgreSQL is back.
  [[nodiscard]] bool was_lost() const { return was_lost_; }

  [[nodiscard]] explicit operator bool() const { return session_ != nullptr; }
  [[nodiscard]] bool alive() const { return session_ && session_->alive(); }
  postgres::Session& operator*() { return *session_; }
  postgres::Session* operator->() { return session_.get(); }

  /// How a session ended that is told of once.
  enum class End {
    kNone,
    kLost,     ///< whoever else has the partitions is to be asked first
    kRenewed,  ///< left of our own accord, between units of work: what is held is compared with
               ///< the register on the next one
  };
  [[nodiscard]] End take_end() { return std::exchange(end_, End::kNone); }

  void lose(const std::string& why);
  /// Restores the session's settings, or renews the session if that is not allowed; tells it.
  /// False: renewed.
  [[nodiscard]] bool restore();
  /// Leaves the session of our own accord; the next one is made at once. No transaction of ours is
  /// under way on it, but for one that was begun ahead, which is rolled back.
  void renew();
  /// Whether a message may begin on the session, or anything else that runs handlers
  /// (postgres/schema_version.hpp). False: it was left or lost.
  [[nodiscard]] bool may_begin();
  /// Whether what failed may have failed because the schema has changed since the session was
  /// opened, which is asked now. It is not counted then, nor said: on a new session it runs again.
  [[nodiscard]] bool is_of_old_schema(const Attempt& attempt);
  /// Ends it; the worker does.
  void close();

  /// In a catch block: what failed. Whether it is the server that lets nothing be written is asked
  /// of the server.
  [[nodiscard]] Failure why_failed();
  /// In a catch block of what is tried again by itself. `what` did not work, for the warning.
  void notice_failure(Warning warning, std::string_view what);

  /// The server of this session is a standby, or may not be written to.
  void lose_if_read_only();

  /// While it lives the monitor watches: a call that takes too long ends with the connection.
  class Watch {
   public:
    ~Watch();
    Watch(const Watch&) = delete;
    Watch& operator=(const Watch&) = delete;

   private:
    friend class WorkerSession;
    explicit Watch(WorkerSession& session) : session_(session) {}
    WorkerSession& session_;
  };
  /// `limit`: what a handler may take in it. `previous_owner`: may hold locks that it waits for.
  [[nodiscard]] Watch watch(const TopicPartition& partition,
                            std::optional<PreviousOwner> previous_owner,
                            std::chrono::milliseconds limit);

  /// A session beside this one, set up in the same way; null: on another database than ours. Throws
  /// whatever goes wrong, also what the application's code throws.
  [[nodiscard]] std::unique_ptr<postgres::Session> open_another();

  /// The same for statements of pawl's own, when the process ends and nothing else connects any
  /// more: it takes no longer than a few seconds.
  [[nodiscard]] std::unique_ptr<postgres::Session> open_to_end() const;

  // From any thread:
  [[nodiscard]] WorkerCall current_call() const;
  /// Breaks the call in progress, if any.
  void interrupt();
  /// Gives up connecting.
  void stop() { stop_asked_ = true; }

 private:
  [[nodiscard]] std::unique_ptr<postgres::Session> open(
      const postgres::SessionSettings& settings) const;
  void run_connect_functions(postgres::Session& fresh);
  void refuse_database();
  void discard();
  void tell_deallocated();
  void tell(Step step, std::string_view why) const;
  void told_away(const std::string& why);

  Context& context_;
  const Whose whose_;
  std::unique_ptr<postgres::Session> session_;  // replaced under mutex_
  /// Being set up by the application's functions; guarded by mutex_
  postgres::Session* setting_up_ = nullptr;
  mutable std::mutex mutex_;
  Backoff backoff_;
  Clock::time_point connect_not_before_{};
  bool was_lost_ = false;
  bool database_refused_ = false;  ///< and said so
  bool deallocated_ = false;       ///< a handler removes prepared statements; and said so
  End end_ = End::kNone;

  mutable std::mutex call_mutex_;
  WorkerCall call_;  // guarded by call_mutex_
  std::atomic<bool> stop_asked_{false};
};

}  // namespace pawl::engine
