#pragma once

// Loses the response to a COMMIT: the transaction commits, and its client cannot know that.
//
//   #include <chrono>
//   #include <pawl/testing/postgres_proxy.hpp>
//   #include <pqxx/pqxx>
//
//   void lose_commit_response(const std::string& server_url) {
//     pawl::testing::PostgresProxy proxy(server_url);
//     pqxx::connection connection(proxy.url());
//     const auto cut = proxy.cut(pawl::testing::Moment::kAfter);
//     try {
//       pqxx::work transaction(connection);
//       transaction.exec("INSERT INTO payments (payment) VALUES ('{}')");
//       transaction.commit();
//     } catch (const pqxx::broken_connection&) {
//     } catch (const pqxx::in_doubt_error&) {
//     }
//     cut.wait(std::chrono::seconds(5));
//   }

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>

namespace pawl::testing {

/// A statement that a condition may match.
struct ProxyEvent {
  std::uint64_t connection = 0;   ///< 1, 2, ... in the order in which the proxy accepted them
  std::uint32_t backend_pid = 0;  ///< as the server reported it; 0: it did not
  /// kBefore: the SQL text of a query, or of the prepared statement that is executed. kAfter: the
  /// command tag, such as "INSERT 0 1" or "COMMIT".
  std::string text;
  bool commit = false;  ///< it commits a transaction. kBefore: COMMIT or END; kAfter: tag COMMIT
};

/// When a trigger acts.
enum class Moment {
  /// The statement has reached the proxy, but not the server. Earlier bytes of the client are
  /// forwarded, also those of the same packet. The statement and all later bytes are not.
  kBefore,
  /// The server has executed the statement, and its response has not reached the client. Earlier
  /// responses are forwarded.
  kAfter,
};

/// A TCP proxy between PostgreSQL clients and a server. It parses the wire protocol (version 3:
/// PostgreSQL, "Frontend/Backend Protocol"), so that it can cut a connection at an exact statement.
///
/// It runs on one thread of its own, from the constructor to the destructor. It does not support
/// TLS and GSS encryption, so connect with sslmode=prefer (the default of libpq) or disable. Any
/// thread may call all methods.
class PostgresProxy {
 public:
  /// Whether a trigger acts on this statement. The proxy calls it on its own thread. It must not
  /// call the proxy.
  using Condition = std::function<bool(const ProxyEvent&)>;

  /// A point at which the proxy cuts or stalls a connection once. Copies share one state. The
  /// destructor does not disarm it.
  class Trigger {
   public:
    /// Whether it has fired. It may become true a moment after the client notices the cut, so use
    /// wait() before you rely on it.
    bool fired() const;
    /// Returns after it has fired and its connection is cut or stalled. Throws Timeout after
    /// `deadline`.
    void wait(std::chrono::milliseconds deadline) const;
    /// Prevents it from firing, unless it has fired already.
    void disarm();

   private:
    friend class PostgresProxy;
    struct State;
    explicit Trigger(std::shared_ptr<State> state) : state_{std::move(state)} {}
    std::shared_ptr<State> state_;
  };

  /// Since the proxy was created.
  struct Counts {
    std::uint64_t accepted = 0;           ///< connections, cancel requests included
    std::uint64_t open = 0;               ///< connections that are open now
    std::uint64_t cut = 0;                ///< connections that the proxy has cut
    std::uint64_t commits_sent = 0;       ///< COMMITs that the proxy forwarded to the server
    std::uint64_t commits_completed = 0;  ///< COMMITs that the server reported as done
    std::uint64_t bytes_to_server = 0;
    std::uint64_t bytes_to_client = 0;
  };

  /// The default condition: the statement commits a transaction.
  static bool is_commit(const ProxyEvent& event) { return event.commit; }

  /// Listens on a free port of 127.0.0.1. `server_url`: a connection string of libpq with one TCP
  /// host. Throws std::invalid_argument for another one, and std::system_error if it cannot listen.
  explicit PostgresProxy(const std::string& server_url);
  ~PostgresProxy();
  PostgresProxy(const PostgresProxy&) = delete;
  PostgresProxy& operator=(const PostgresProxy&) = delete;

  int port() const;
  /// The URL that the constructor received, with the address of the proxy.
  std::string url() const;
  /// Another URL of the same server, with the address of the proxy.
  std::string url(const std::string& server_url) const;

  /// Closes the connection of the statement that meets the condition for the n-th time from now on.
  /// `occurrence`: n, from 1.
  Trigger cut(Moment moment, Condition condition = is_commit, int occurrence = 1);
  /// The same, but stops forwarding on the connection without closing it, until resume().
  Trigger stall(Moment moment, Condition condition = is_commit, int occurrence = 1);

  /// Stops forwarding in both directions on all connections, including new ones, without closing a
  /// socket, as if the network failed.
  void stall_all();
  /// The same for this duration. Forwarding then resumes automatically.
  void stall_all_for(std::chrono::milliseconds duration);
  /// Resumes forwarding, also on connections that a trigger has stalled.
  void resume();

  /// Closes every connection, in both directions.
  void cut_all();
  /// While true, the operating system rejects new connections ("connection refused"). Open ones
  /// stay.
  void refuse_connections(bool refuse);

  /// Delays each byte that the proxy receives from now on, in order.
  void set_latency(std::chrono::microseconds to_server, std::chrono::microseconds to_client);

  Counts counts() const;

 private:
  class Impl;
  std::string server_url_;
  std::unique_ptr<Impl> impl_;
};

}  // namespace pawl::testing
