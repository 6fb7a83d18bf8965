#pragma once

#include <libpq-fe.h>

#include <atomic>
#include <chrono>
#include <optional>
#include <string>
#include <vector>

namespace pawl::postgres {

/// One of the servers that a connection string lists (PostgreSQL manual, 34.1.1.3 "Specifying
/// Multiple Hosts"). What is empty is libpq's own default, or looked up.
struct Server {
  std::string host;
  std::string address;  ///< "hostaddr": numeric, in place of a look-up of the host
  std::string port;

  friend bool operator==(const Server&, const Server&) = default;
};

/// What libpq takes for "host", "hostaddr" and "port", each of which lists one entry per server;
/// one port alone is every server's.
[[nodiscard]] std::vector<Server> listed_servers(const std::string& hosts,
                                                 const std::string& addresses,
                                                 const std::string& ports);

/// The servers to try once `silent`, an entry of `listed` at the address in hand, has not answered:
/// the other addresses behind it that its host was found to have, and the entries after it.
[[nodiscard]] std::vector<Server> servers_behind(const std::vector<Server>& listed,
                                                 const Server& silent,
                                                 const std::vector<std::string>& addresses);

/// How to connect.
struct ConnectRequest {
  std::string url;
  std::string application_name;
  /// Of each address. The URL's own connect_timeout counts instead, where it has one.
  std::chrono::milliseconds timeout{5000};
  /// Set by another thread when the connection is not wanted any more; may be null.
  const std::atomic<bool>* unwanted = nullptr;
  /// Its first line of output is the password; empty: none.
  std::vector<std::string> password_command = {};
  /// The files that the URL is read from, for people; empty: none.
  std::string files = {};
};

/// What the command prints as the password, run now; nullopt: there is no command. `unwanted`: as
/// above. Throws Error (connection class), whose text never holds what it printed.
[[nodiscard]] std::optional<std::string> password_of(const std::vector<std::string>& command,
                                                     const std::atomic<bool>* unwanted = nullptr);

/// Connects as PQconnectdb does, one server after the other with a limit for each, but ends within
/// 50 ms once nobody wants it. Only the look-up of a host's name cannot be broken off: the
/// resolver's own timeout bounds it. A password command is run once before, whichever server
/// answers then, and never its output shown. Throws Error (connection class). The caller owns the
/// result.
[[nodiscard]] PGconn* connect(const ConnectRequest& request);

}  // namespace pawl::postgres
