#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>

namespace pawl::testing {

/// What the proxy sees of a statement when a trigger is asked.
struct ProxyEvent {
  std::uint64_t connection = 0;   ///< 1, 2, ... in the order of accepting
  std::uint32_t backend_pid = 0;  ///< as the server announced it; 0 through what does not
  /// Before: the SQL text (of a Query, or of the prepared statement that is executed).
  /// After: the command tag, for example "INSERT 0 1" or "COMMIT".
  std::string text;
  bool commit = false;  ///< it ends a transaction: COMMIT or END before, tag COMMIT after
};

/// When a trigger acts.
enum class Moment {
  /// The statement has reached the proxy and not the server. What the client sent ahead of it,
  /// also in the same packet, is forwarded; the statement and what follows is not.
  kBefore,
  /// The server has done it and answered, and the answer has not reached the client. Earlier
  /// answers are forwarded.
  kAfter,
};

/// A TCP proxy between PostgreSQL clients and a server that understands enough of the wire protocol
/// (version 3: PostgreSQL manual, "Frontend/Backend Protocol") to fail at exact points of it. It
/// runs on one thread of its own, from construction to destruction. It refuses TLS and GSS
/// encryption, so connect with sslmode=prefer (libpq's default) or disable. Every method may be
/// called from any thread.
class PostgresProxy {
 public:
  using Condition = std::function<bool(const ProxyEvent&)>;

  /// A point at which the proxy does something once. Copies share one state; letting go of it
  /// does not disarm it.
  class Trigger {
   public:
    /// May turn true a moment after the client notices: to rely on it, wait().
    bool fired() const;
    /// Returns once it has fired and its connection is cut or stalled. Throws Timeout.
    void wait(std::chrono::milliseconds deadline) const;
    /// It will not fire any more, unless it has already.
    void disarm();

   private:
    friend class PostgresProxy;
    struct State;
    explicit Trigger(std::shared_ptr<State> state) : state_{std::move(state)} {}
    std::shared_ptr<State> state_;
  };

  struct Counts {
    std::uint64_t accepted = 0;          ///< connections, cancel requests included
    std::uint64_t open = 0;              ///< connections now
    std::uint64_t cut = 0;               ///< connections that the proxy has cut
    std::uint64_t commits_sent = 0;      ///< COMMITs that were forwarded to the server
    std::uint64_t commits_answered = 0;  ///< COMMITs that the server reported as done
    std::uint64_t bytes_to_server = 0;
    std::uint64_t bytes_to_client = 0;
  };

  static bool is_commit(const ProxyEvent& event) { return event.commit; }

  /// Listens on a free port of 127.0.0.1. `server_url` is a libpq URL or key=value string with a
  /// TCP host. Throws std::invalid_argument, std::system_error.
  explicit PostgresProxy(const std::string& server_url);
  ~PostgresProxy();
  PostgresProxy(const PostgresProxy&) = delete;
  PostgresProxy& operator=(const PostgresProxy&) = delete;

  int port() const;
  /// The server's URL as given to the constructor, led through the proxy.
  std::string url() const;
  /// Another URL of the same server, led through the proxy.
  std::string url(const std::string& server_url) const;

  /// Cuts, or stalls, the connection of the n-th event from now on that meets the condition.
  /// A condition is asked on the proxy's thread and must not call the proxy.
  Trigger cut(Moment moment, Condition condition = is_commit, int occurrence = 1);
  Trigger stall(Moment moment, Condition condition = is_commit, int occurrence = 1);

  /// Stops forwarding in both directions, on all connections, including new ones, without closing a
  /// socket: as if the network failed.
  void stall_all();
  /// The same for a while. Forwarding then resumes automatically.
  void stall_all_for(std::chrono::milliseconds duration);
  /// Resumes forwarding, also on connections that a trigger has stalled.
  void resume();

  /// Closes every connection, in both directions.
  void cut_all();
  /// While true, connecting fails with "connection refused". Open connections stay.
  void refuse_connections(bool refuse);

  /// Each byte arrives this much later, in order. For what comes from now on.
  void set_latency(std::chrono::microseconds to_server, std::chrono::microseconds to_client);

  Counts counts() const;

 private:
  class Impl;
  std::string server_url_;
  std::unique_ptr<Impl> impl_;
};

}  // namespace pawl::testing
