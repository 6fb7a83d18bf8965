#include "postgres/connecting.hpp"

#include <fmt/format.h>
#include <netdb.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>

#include "postgres/connect_advice.hpp"
#include "postgres/connection_string.hpp"
#include "postgres/error.hpp"
#include "postgres/socket_wait.hpp"
#include "process/program.hpp"

namespace pawl::postgres {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using std::chrono::steady_clock;

constexpr seconds kPasswordTimeout{10};
/// Tokens that are used as passwords have some thousand.
constexpr std::size_t kMostPassword = std::size_t{64} << 10U;

using Connection = std::unique_ptr<PGconn, decltype(&PQfinish)>;

std::vector<std::string> split(const std::string& list) {
  std::vector<std::string> parts;
  std::size_t from = 0;
  while (true) {
    const auto comma = list.find(',', from);
    parts.push_back(list.substr(from, comma - from));
    if (comma == std::string::npos)
      return parts;
    from = comma + 1;
  }
}

std::string join(const std::vector<Server>& servers, std::string Server::* part) {
  std::string list;
  for (const auto& server : servers)
    list.append(&server == servers.data() ? "" : ",").append(server.*part);
  return list;
}

/// Looked up once more, by a name that was just found: so it is quick.
std::vector<std::string> addresses_of(const std::string& host) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  std::vector<std::string> addresses;
  if (::getaddrinfo(host.c_str(), nullptr, &hints, &found) != 0)
    return addresses;
  for (const auto* one = found; one != nullptr; one = one->ai_next) {
    char text[NI_MAXHOST];
    if (::getnameinfo(one->ai_addr, one->ai_addrlen, text, sizeof text, nullptr, 0,
                      NI_NUMERICHOST) == 0)
      addresses.emplace_back(text);
  }
  ::freeaddrinfo(found);
  return addresses;
}

std::string or_empty(const char* text) {
  return text == nullptr ? "" : text;
}

/// The server and address that libpq is at.
Server current(PGconn* raw) {
  return {or_empty(PQhost(raw)), or_empty(PQhostaddr(raw)), or_empty(PQport(raw))};
}

std::string named(const Server& server) {
  if (server.address.empty() || server.address == server.host)
    return fmt::format("{} port {}", server.host, server.port);
  return fmt::format("{} ({}) port {}", server.host, server.address, server.port);
}

PasswordSource source_of(const ConnectRequest& request) {
  return {!request.password_command.empty(), request.files};
}

class Attempt {
 public:
  /// Without a password that of the connection string, or of libpq's environment, counts.
  Attempt(const ConnectRequest& request, const std::optional<std::string>& password,
          const std::optional<std::vector<Server>>& servers)
      : request_(request), raw_(start(request, password, servers), &PQfinish) {
    if (!raw_)
      throw Error::connection_lost("out of memory while connecting to PostgreSQL");
    if (PQstatus(raw_.get()) == CONNECTION_BAD)
      throw refused();
    limit_ = limit();
  }

  /// Null: the server in hand was silent for too long. Throws Error when libpq gives up.
  Connection finish() {
    auto at = current(raw_.get());
    auto until = steady_clock::now() + limit_;
    auto state = PGRES_POLLING_WRITING;  // as libpq's manual demands, 34.1 "PQconnectStartParams"
    while (state != PGRES_POLLING_OK) {
      if (state == PGRES_POLLING_FAILED)
        throw refused();
      if (!wait(state == PGRES_POLLING_READING ? POLLIN : POLLOUT, until))
        return {nullptr, &PQfinish};
      state = PQconnectPoll(raw_.get());
      if (auto now_at = current(raw_.get()); now_at != at) {
        at = std::move(now_at);
        until = steady_clock::now() + limit_;
      }
    }
    return std::exchange(raw_, {nullptr, &PQfinish});
  }

  /// Where to go on when finish() returned null.
  [[nodiscard]] std::vector<Server> rest() const {
    const auto silent = current(raw_.get());
    const auto listed = listed_servers(option("host"), option("hostaddr"), option("port"));
    const bool looked_up = silent.host != silent.address && !silent.address.empty();
    return servers_behind(listed, silent,
                          looked_up ? addresses_of(silent.host) : std::vector<std::string>{});
  }

  [[nodiscard]] std::string silence() const {
    return fmt::format("{} did not respond within {:g} s", named(current(raw_.get())),
                       std::chrono::duration<double>(limit_).count());
  }

 private:
  static PGconn* start(const ConnectRequest& request, const std::optional<std::string>& password,
                       const std::optional<std::vector<Server>>& servers) {
    const auto list = [&servers](std::string Server::* part) {
      return servers ? join(*servers, part) : std::string();
    };
    const auto hosts = list(&Server::host);
    const auto addresses = list(&Server::address);
    const auto ports = list(&Server::port);
    // Before "dbname" stands what the user's string may override; after it what must hold.
    const char* const keywords[] = {"fallback_application_name",
                                    "keepalives_idle",
                                    "keepalives_interval",
                                    "keepalives_count",
                                    "tcp_user_timeout",
                                    "dbname",
                                    "password",
                                    "client_encoding",
                                    "host",
                                    "hostaddr",
                                    "port",
                                    nullptr};
    // libpq passes over those that are null.
    const auto given = [&servers](const std::string& text) {
      return servers ? text.c_str() : nullptr;
    };
    const char* const values[] = {request.application_name.c_str(),
                                  "10",
                                  "5",
                                  "3",
                                  "30000",
                                  request.url.c_str(),
                                  password ? password->c_str() : nullptr,
                                  "UTF8",
                                  given(hosts),
                                  given(addresses),
                                  given(ports),
                                  nullptr};
    return PQconnectStartParams(keywords, values, 1);
  }

  [[nodiscard]] Error refused() const {
    const auto report = connect_report(raw_.get());
    const auto at = current(raw_.get());
    return Error::connection_lost(report + connect_advice(report, source_of(request_),
                                                          fmt::format("{}:{}", at.host, at.port)));
  }

  /// What libpq understands by connect_timeout; it does not look at it unless it waits itself.
  [[nodiscard]] milliseconds limit() const {
    const auto text = option("connect_timeout");
    if (text.empty())
      return request_.timeout;
    const auto whole = std::strtol(text.c_str(), nullptr, 10);
    if (whole <= 0)
      return std::chrono::hours{24};
    return std::max(seconds{whole}, seconds{2});
  }

  [[nodiscard]] std::string option(std::string_view keyword) const {
    const ConnectionOptions options(PQconninfo(raw_.get()));
    for (const auto* one = options.get(); one != nullptr && one->keyword != nullptr; ++one) {
      if (keyword == one->keyword)
        return or_empty(one->val);
    }
    return {};
  }

  /// False: not in time.
  bool wait(short events, steady_clock::time_point until) {
    const auto waited = wait_for_socket(raw_.get(), events, until, request_.unwanted);
    if (waited == Waited::kUnwanted)
      throw Error::connection_lost("the connection is no longer needed");
    return waited == Waited::kReady;
  }

  const ConnectRequest& request_;
  Connection raw_;
  milliseconds limit_{};
};

}  // namespace

std::optional<std::string> password_of(const std::vector<std::string>& command,
                                       const std::atomic<bool>* unwanted) {
  if (command.empty())
    return std::nullopt;
  auto [problem, password] =
      process::Program(command, kPasswordTimeout, kMostPassword).run({.unwanted = unwanted});
  if (unwanted != nullptr && unwanted->load())
    throw Error::connection_lost("the connection is no longer needed");
  password.resize(std::min(password.find('\n'), password.size()));
  if (password.ends_with('\r'))
    password.pop_back();
  if (problem.empty() && password.empty())
    problem = "its first line of output is empty";
  if (problem.empty() && password.find('\0') != std::string::npos)
    problem = "its first line of output contains a NUL character";
  if (!problem.empty()) {
    throw Error::connection_lost(
        fmt::format("postgres.password_command failed: {} ({}). Run it as the user of this process "
                    "to see its output",
                    problem, command.front()));
  }
  return password;
}

std::vector<Server> listed_servers(const std::string& hosts, const std::string& addresses,
                                   const std::string& ports) {
  const auto host = split(hosts);
  const auto address = split(addresses);
  const auto port = split(ports);
  std::vector<Server> servers(std::max(host.size(), address.size()));
  const auto at = [](const std::vector<std::string>& parts, std::size_t i) {
    return i < parts.size() ? parts[i] : std::string();
  };
  for (std::size_t i = 0; i < servers.size(); ++i)
    servers[i] = {at(host, i), at(address, i), port.size() == 1 ? port.front() : at(port, i)};
  return servers;
}

std::vector<Server> servers_behind(const std::vector<Server>& listed, const Server& silent,
                                   const std::vector<std::string>& addresses) {
  // libpq says what it uses; the list may leave the host, or the port, to it.
  const auto found = std::find_if(listed.begin(), listed.end(), [&silent](const Server& server) {
    const bool same_host =
        server.host.empty() ? server.address == silent.address : server.host == silent.host;
    const bool same_address = server.address.empty() || server.address == silent.address;
    return same_host && same_address && (server.port.empty() || server.port == silent.port);
  });
  if (found == listed.end())
    return {};
  std::vector<Server> rest;
  if (found->address.empty()) {
    const auto here = std::find(addresses.begin(), addresses.end(), silent.address);
    for (auto it = here; it != addresses.end(); ++it) {
      if (*it != silent.address)
        rest.push_back({found->host, *it, found->port});
    }
  }
  rest.insert(rest.end(), std::next(found), listed.end());
  return rest;
}

PGconn* connect(const ConnectRequest& request) {
  if (const auto problem = problem_of(request.url)) {
    throw Error::connection_lost(fmt::format("postgres.url: {}. {}{}", problem->what, problem->fix,
                                             read_again(source_of(request))));
  }
  const auto password = password_of(request.password_command, request.unwanted);
  std::optional<std::vector<Server>> servers;
  std::string before;
  while (true) {
    try {
      Attempt attempt(request, password, servers);
      if (auto connection = attempt.finish())
        return connection.release();
      before += (before.empty() ? "" : "; ") + attempt.silence();
      servers = attempt.rest();
    } catch (const Error& error) {
      if (before.empty())
        throw;
      throw Error::connection_lost(fmt::format("{}; {}", before, error.what()));
    }
    if (servers->empty())
      throw Error::connection_lost(before);
  }
}

}  // namespace pawl::postgres
