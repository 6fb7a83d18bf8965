#pragma once

#include <curl/curl.h>

#include <array>
#include <chrono>
#include <cstddef>
#include <stop_token>
#include <string>
#include <vector>

#include "handlers/http/request_template.hpp"

namespace pawl::handlers {

/// How an http handler's requests are sent.
struct HttpClientOptions {
  std::size_t max_response = 0;  ///< bytes of a response's body that are kept
  // PEM files; empty: the system's authorities, no client certificate.
  std::string ca_file;
  std::string certificate;
  std::string private_key;
  bool keep_alive = true;
};

/// How one request ended.
struct HttpResult {
  CURLcode code = CURLE_OK;
  std::string text;  ///< of what failed
  long status = 0;
  bool sent = false;    ///< some of the request may have left
  bool full = false;    ///< more of the body arrived than is kept
  bool unread = false;  ///< nothing was sent, because the kept connection has unread input
  std::chrono::milliseconds retry_after{0};
  std::string body;
};

/// What is known of a connection after a response.
struct ConnectionState {
  bool keep_alive = true;   ///< the handler's option
  bool whole = false;       ///< the transfer ended without an error
  bool open = false;        ///< libcurl keeps it: the server did not ask to close it
  bool excess = false;      ///< bytes followed the response in the same read
  bool has_unread = false;  ///< bytes, or the end of the stream, wait in the socket
};
/// Whether another request may be sent on it. On any other connection the next bytes that arrive
/// may belong to this request.
[[nodiscard]] bool may_reuse(const ConnectionState& state);

/// "Name: value" as libcurl takes it. A header whose value is empty, or white space, is written
/// with a semicolon, because libcurl would otherwise omit it.
[[nodiscard]] std::string line_for_curl(const std::string& header);

/// A connection to an HTTP server, by libcurl, which may stay open between requests. Owned by an
/// HttpHandler. One thread at a time.
class HttpConnection {
 public:
  /// Throws NotDone when libcurl has no memory for it.
  HttpConnection();
  ~HttpConnection();
  HttpConnection(const HttpConnection&) = delete;
  HttpConnection& operator=(const HttpConnection&) = delete;

  /// Sends one request and reads its response, for `time` at most. `stop` ends it at once: the
  /// socket is closed before run() returns. A response that has arrived whole by then is returned.
  HttpResult run(const HttpClientOptions& options, const HttpRequest& request,
                 std::chrono::milliseconds time, std::stop_token stop);
  /// Connects, and requests nothing.
  HttpResult connect(const HttpClientOptions& options, const std::string& url);

  /// Of the last run(): whether another one may follow.
  [[nodiscard]] bool may_be_kept() const { return may_be_kept_; }

 private:
  enum class Sent { kNo, kOnce, kAgain };

  template <typename Value>
  void set(CURLoption option, Value value);
  void reset();
  void set_up(const HttpClientOptions& options, std::chrono::milliseconds time);
  void set_up_sockets();
  void set_up_request(const HttpRequest& request);
  CURLcode transfer();
  [[nodiscard]] std::string text_of(CURLcode code) const;
  [[nodiscard]] bool socket_has_unread() const;
  [[nodiscard]] bool tls_has_unread() const;
  [[nodiscard]] bool has_sent_all() const;

  // libcurl's callbacks; `self` is a HttpConnection.
  static std::size_t take_body(char* data, std::size_t size, std::size_t count, void* self);
  static std::size_t take_header(char* data, std::size_t size, std::size_t count, void* self);
  static int before_request(void* self, char* primary_ip, char* local_ip, int primary_port,
                            int local_port);
  static curl_socket_t open_socket(void* self, curlsocktype purpose, curl_sockaddr* address);
  static int close_socket(void* self, curl_socket_t socket);
  static int take_note(CURL* handle, curl_infotype type, char* data, std::size_t size, void* self);

  CURLM* multi_;
  CURL* easy_;
  std::vector<curl_socket_t> sockets_;  ///< that are open; two while addresses race
  std::array<char, CURL_ERROR_SIZE> error_{};
  bool may_be_kept_ = false;
  // Of the current request:
  std::stop_token stop_;
  std::string body_;
  curl_off_t to_send_ = 0;  ///< bytes of the request's body
  std::size_t most_ = 0;
  std::size_t dropped_ = 0;
  Sent sent_ = Sent::kNo;
  bool is_tls_ = false;
  bool opened_ = false;     ///< it has a new socket
  bool answered_ = false;   ///< its response has begun
  bool too_early_ = false;  ///< ... before the server had received the request
  bool unread_ = false;
  bool excess_ = false;
  bool full_ = false;
};

}  // namespace pawl::handlers
