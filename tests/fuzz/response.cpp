// HTTP responses to the requests of handlers, as the client reads them from a socket.
#include <arpa/inet.h>
#include <curl/curl.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <charconv>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "fuzz.hpp"
#include "handlers/http/http_connection.hpp"

using namespace pawl::handlers;
using pawl::fuzzing::require;

namespace {

constexpr std::size_t kMost = 64;

/// A response that leaves no doubt (RFC 9112): strictly HTTP/1.1 with one Content-Length, or with
/// chunks without extensions and trailers.
struct Reference {
  long status = 0;
  std::string body;
  bool keep_alive = true;
  std::size_t end = 0;  ///< where the next response would begin
};

bool equal_names(std::string_view one, std::string_view other) {
  return same_name(one, other);
}

std::optional<std::size_t> number(std::string_view text, int base) {
  std::size_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
  if (text.empty() || text.size() > 6 || error != std::errc{} || end != text.data() + text.size())
    return std::nullopt;
  return value;
}

std::optional<std::string_view> strict_line(std::string_view text, std::size_t& at) {
  const auto end = text.find("\r\n", at);
  if (end == std::string_view::npos)
    return std::nullopt;
  const auto line = text.substr(at, end - at);
  at = end + 2;
  for (const char c : line) {
    if (static_cast<unsigned char>(c) < ' ' || static_cast<unsigned char>(c) > 126)
      return std::nullopt;
  }
  return line;
}

bool read_chunks(std::string_view text, Reference& result) {
  while (true) {
    const auto line = strict_line(text, result.end);
    const auto size = line ? number(*line, 16) : std::nullopt;
    if (!size)
      return false;
    if (*size == 0) {
      const auto last = strict_line(text, result.end);
      return last && last->empty();
    }
    if (text.size() - result.end < *size + 2 || text.substr(result.end + *size, 2) != "\r\n")
      return false;
    result.body += text.substr(result.end, *size);
    result.end += *size + 2;
  }
}

std::optional<Reference> strict_response(std::string_view text) {
  Reference result;
  const auto status = strict_line(text, result.end);
  if (!status || !status->starts_with("HTTP/1.1 ") || status->size() < 13 || (*status)[12] != ' ')
    return std::nullopt;
  const auto code = number(status->substr(9, 3), 10);
  // 1xx, 204, and 304 have no body; 401 and 407 may be answered by the client.
  if (!code || *code < 200 || *code > 599 || *code == 204 || *code == 304 || *code == 401 ||
      *code == 407)
    return std::nullopt;
  result.status = static_cast<long>(*code);
  std::optional<std::size_t> length;
  bool chunked = false;
  while (true) {
    const auto line = strict_line(text, result.end);
    if (!line)
      return std::nullopt;
    if (line->empty())
      break;
    const auto colon = line->find(": ");
    if (colon == std::string_view::npos || line->front() == ' ')
      return std::nullopt;
    const auto name = line->substr(0, colon);
    const auto value = line->substr(colon + 2);
    if (equal_names(name, "Content-Length")) {
      if (length || !number(value, 10))
        return std::nullopt;
      length = number(value, 10);
    } else if (equal_names(name, "Transfer-Encoding")) {
      if (chunked || value != "chunked")
        return std::nullopt;
      chunked = true;
    } else if (equal_names(name, "Connection")) {
      result.keep_alive = false;
    } else if (name.find_first_of(" \t()<>@,;:\\\"/[]?={}") != std::string_view::npos) {
      return std::nullopt;
    }
  }
  if (chunked == length.has_value())
    return std::nullopt;
  if (chunked)
    return read_chunks(text, result) ? std::optional(result) : std::nullopt;
  if (text.size() - result.end < *length)
    return std::nullopt;
  result.body = text.substr(result.end, *length);
  result.end += *length;
  return result;
}

/// Answers one request per connection with the current input.
class Server {
 public:
  Server() : listener_(::socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    auto* const plain = reinterpret_cast<sockaddr*>(&address);
    require(::bind(listener_, plain, size) == 0 && ::listen(listener_, 64) == 0 &&
                ::getsockname(listener_, plain, &size) == 0,
            "a port is free");
    port_ = ntohs(address.sin_port);
    std::thread([this] { serve(); }).detach();
  }

  [[nodiscard]] int port() const { return port_; }
  void respond_with(std::string bytes, bool close) {
    const std::scoped_lock lock(mutex_);
    bytes_ = std::move(bytes);
    close_ = close;
  }

 private:
  void serve() {
    int kept = -1;
    while (true) {
      const int client = ::accept(listener_, nullptr, nullptr);
      if (kept >= 0)
        ::close(kept);
      kept = -1;
      std::string request;
      char buffer[4096];
      while (request.find("\r\n\r\n") == std::string::npos) {
        const auto got = ::recv(client, buffer, sizeof buffer, 0);
        if (got <= 0)
          break;
        request.append(buffer, static_cast<std::size_t>(got));
      }
      std::unique_lock lock(mutex_);
      const auto bytes = bytes_;
      const bool close = close_;
      lock.unlock();
      (void)::send(client, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (close) {
        // A reset would discard what the client has not read.
        ::shutdown(client, SHUT_WR);
        while (::recv(client, buffer, sizeof buffer, 0) > 0) {
        }
        ::close(client);
      } else {
        kept = client;
      }
    }
  }

  const int listener_;
  int port_ = 0;
  std::mutex mutex_;
  std::string bytes_;   // guarded by mutex_
  bool close_ = false;  // guarded by mutex_
};

}  // namespace

void fuzz(std::string_view input) {
  static auto* const server = new Server;
  const auto expected = strict_response(input);
  // The client waits for the rest of a response only if the server could still send it.
  const bool close = !expected.has_value();
  server->respond_with(std::string(input), close);
  HttpClientOptions options;
  options.max_response = kMost;
  HttpRequest request;
  request.method = "GET";
  request.url = "http://127.0.0.1:" + std::to_string(server->port()) + "/";
  HttpConnection connection;
  const auto result = connection.run(options, request, std::chrono::seconds(20), {});
  require(result.body.size() <= kMost, "no more of a body is kept than allowed");
  require(result.sent, "a request was sent", result.text);
  if (!expected)
    return;
  require(result.code == CURLE_OK, "a whole response is no error", result.text);
  require(result.status == expected->status, "a response has its status");
  require(result.body == expected->body.substr(0, kMost), "a response has its body", result.body);
  if (input.size() > expected->end)
    require(!connection.may_be_kept(), "a connection with surplus bytes is not kept");
  if (!expected->keep_alive && input.find("close") != std::string_view::npos)
    return;
  if (input.size() == expected->end && expected->keep_alive)
    require(connection.may_be_kept(), "a connection after a whole response is kept", result.text);
}
