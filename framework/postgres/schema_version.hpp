#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>

namespace pawl::postgres {

class Session;

/// Detects changes of the schema. What a session has cached of the schema is valid only until then:
/// PostgreSQL keeps the types of a prepared statement's parameters, plpgsql those of %TYPE
/// variables, and the application what it read in on_connect, for as long as the connection lives.
/// So a unit of work (a message, a flight, a batch, a call, a replay) begins only on a session that
/// was opened under the current version, and only while that version was confirmed a short time
/// ago. If it was not, the session that begins work reads the catalog. While nothing is processed
/// no session reads it. One for each process; any thread.
class SchemaVersion {
 public:
  using Clock = std::chrono::steady_clock;
  using Number = std::uint64_t;

  /// The age from which a unit of work that begins has the version confirmed. Up to twice this age
  /// the others go on while one session does so.
  static constexpr std::chrono::milliseconds kInterval{2000};

  explicit SchemaVersion(std::chrono::milliseconds interval = default_interval())
      : interval_(interval) {}

  /// Of those that are made from now on, for tests: zero confirms whenever work begins.
  static void set_default_interval(std::chrono::milliseconds interval);

  /// Grows whenever the schema is found changed; 0: it was not read yet. A session's is read before
  /// its connection is made.
  [[nodiscard]] Number current() const;

  /// Whether a unit of work may begin on the session. Outside of its transactions: what was begun
  /// ahead is rolled back where the catalog is to be read. Throws Error when it cannot be.
  [[nodiscard]] bool may_begin(Session& session);

  /// Reads the catalog now. Throws Error.
  void confirm(Session& session);

  /// Whether a function, trigger, default, view or rule of this database takes advisory locks of
  /// the session, so that any statement may do so. True until the catalog was read.
  [[nodiscard]] bool has_session_locks() const { return has_session_locks_; }

  /// Whether a statement may change settings of its session by what it does not name: the database
  /// has a function outside of the schema pawl, or a default, view, rule or the like calls
  /// set_config(). True until the catalog was read. The value false can be up to two intervals old.
  [[nodiscard]] bool may_change_settings() const { return may_change_settings_; }

  /// Reads the catalog now: whether it has changed since the session was opened. True if the
  /// catalog cannot be read, for nothing is known then.
  [[nodiscard]] bool has_changed_since(Session& session);

  /// What is to be done before a unit of work begins.
  enum class Reading {
    kNone,     ///< the version was confirmed a short time ago
    kOne,      ///< one session reads it, the others go on
    kEveryone  ///< nobody goes on without
  };
  /// `age`: of the last confirmation; nullopt: there was none.
  [[nodiscard]] static Reading reading_due(std::optional<Clock::duration> age,
                                           std::chrono::milliseconds interval);

  /// What a statement can do to its session through objects that it does not name.
  struct SessionEffects {
    bool locks = true;
    bool settings = true;
  };
  /// Takes note of what the catalog was, at `asked_at` or later. An answer to an older question
  /// than the last one says nothing new.
  void learn(const std::string& fingerprint, const SessionEffects& effects,
             Clock::time_point asked_at);

 private:
  static std::chrono::milliseconds default_interval();
  [[nodiscard]] bool is_known(const std::string& fingerprint) const;

  const std::chrono::milliseconds interval_;
  mutable std::mutex mutex_;
  // mutex_ guards all writes, and the reads of all but the atomics:
  std::atomic<bool> has_session_locks_ = true;
  std::atomic<bool> may_change_settings_ = true;
  Number number_ = 0;
  std::string fingerprint_;
  std::optional<Clock::time_point> confirmed_at_;
  bool is_read_ = false;  ///< by some session, just now
};

}  // namespace pawl::postgres
