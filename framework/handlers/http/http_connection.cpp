#include "handlers/http/http_connection.hpp"

#include <fmt/format.h>
#include <linux/sockios.h>
#include <openssl/ssl.h>
#include <strings.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <new>
#include <string_view>
#include <utility>

#include "pawl/lease.hpp"

namespace pawl::handlers {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kConnectTime{10000};
constexpr std::chrono::duration<long> kMostIdle{20};
/// A response that is longer than what is kept is read so much further, for the connection to be
/// used again.
constexpr std::size_t kMostDropped = std::size_t{1} << 20U;
constexpr milliseconds kLongestRetryAfter{std::chrono::hours(1)};
/// libcurl's own timers and a wake-up end a poll earlier.
constexpr milliseconds kLongestPoll{1000};

struct FreeList {
  void operator()(curl_slist* list) const { curl_slist_free_all(list); }
};
using HeaderList = std::unique_ptr<curl_slist, FreeList>;

void add(HeaderList& headers, const std::string& header) {
  auto* const longer = curl_slist_append(headers.get(), header.c_str());
  if (longer == nullptr)
    throw NotDone("out of memory for a header of libcurl");
  (void)headers.release();
  headers.reset(longer);
}

/// The kernel has bytes of ours that the peer's kernel has not acknowledged. A segment acknowledges
/// all that was received when it is sent, so a response to the whole request leaves none.
bool has_unacknowledged(curl_socket_t socket) {
  int bytes = 0;
  return ::ioctl(socket, SIOCOUTQ, &bytes) == 0 && bytes > 0;
}

/// As long as it lives a transfer runs. libcurl closes the connection of one that has not ended.
class Added {
 public:
  Added(CURLM* multi, CURL* easy) : multi_(multi), easy_(easy) {
    if (curl_multi_add_handle(multi_, easy_) != CURLM_OK)
      throw NotDone("libcurl cannot start a transfer");
  }
  ~Added() { curl_multi_remove_handle(multi_, easy_); }
  Added(const Added&) = delete;
  Added& operator=(const Added&) = delete;

 private:
  CURLM* multi_;
  CURL* easy_;
};

}  // namespace

bool may_reuse(const ConnectionState& state) {
  return state.keep_alive && state.whole && state.open && !state.excess && !state.has_unread;
}

std::string line_for_curl(const std::string& header) {
  const auto colon = header.find(':');
  const bool empty = colon != std::string::npos && colon + 1 < header.size() &&
                     header.find_first_not_of(" \t\v\f", colon + 1) == std::string::npos;
  return empty ? header.substr(0, colon) + ";" : header;
}

HttpConnection::HttpConnection() : multi_(curl_multi_init()), easy_(curl_easy_init()) {
  if (multi_ != nullptr && easy_ != nullptr &&
      curl_multi_setopt(multi_, CURLMOPT_MAXCONNECTS, 1L) == CURLM_OK)
    return;
  curl_easy_cleanup(easy_);
  curl_multi_cleanup(multi_);
  throw NotDone("out of memory for a connection of libcurl");
}

HttpConnection::~HttpConnection() {
  // Both close sockets, by close_socket().
  curl_easy_cleanup(easy_);
  curl_multi_cleanup(multi_);
}

HttpResult HttpConnection::run(const HttpClientOptions& options, const HttpRequest& request,
                               milliseconds time, std::stop_token stop) {
  reset();
  stop_ = std::move(stop);
  most_ = options.max_response;
  is_tls_ = ::strncasecmp(request.url.c_str(), "https:", 6) == 0;
  set_up(options, time);
  set_up_request(request);
  HeaderList headers;
  for (const auto& header : request.headers)
    add(headers, line_for_curl(header));
  // Else libcurl waits for "100 Continue" with larger bodies, and names a form's type.
  add(headers, "Expect:");
  if (!options.keep_alive)
    add(headers, "Connection: close");
  set(CURLOPT_HTTPHEADER, headers.get());
  HttpResult result;
  result.code = transfer();
  curl_easy_getinfo(easy_, CURLINFO_RESPONSE_CODE, &result.status);
  curl_off_t seconds = 0;
  if (curl_easy_getinfo(easy_, CURLINFO_RETRY_AFTER, &seconds) == CURLE_OK && seconds > 0) {
    result.retry_after = std::min<milliseconds>(
        kLongestRetryAfter, std::chrono::seconds(std::min<curl_off_t>(seconds, 3600)));
  }
  result.sent = sent_ != Sent::kNo;
  result.full = full_;
  result.unread = unread_;
  result.text = text_of(result.code);
  result.body = std::move(body_);
  may_be_kept_ = may_reuse({.keep_alive = options.keep_alive,
                            .whole = result.code == CURLE_OK,
                            .open = !sockets_.empty(),
                            .excess = excess_,
                            .has_unread = socket_has_unread()});
  // Its pointers end with this call.
  curl_easy_reset(easy_);
  return result;
}

HttpResult HttpConnection::connect(const HttpClientOptions& options, const std::string& url) {
  reset();
  set_up(options, kConnectTime);
  // Nothing is requested.
  set(CURLOPT_PREREQFUNCTION, static_cast<curl_prereq_callback>(nullptr));
  set(CURLOPT_URL, url.c_str());
  set(CURLOPT_CONNECT_ONLY, 1L);
  HttpResult result;
  result.code = curl_easy_perform(easy_);
  result.text = text_of(result.code);
  return result;
}

template <typename Value>
void HttpConnection::set(CURLoption option, Value value) {
  const auto code = curl_easy_setopt(easy_, option, value);
  if (code != CURLE_OK)
    throw NotDone(fmt::format("libcurl rejects an option: {}", curl_easy_strerror(code)));
}

void HttpConnection::reset() {
  curl_easy_reset(easy_);
  error_.fill('\0');
  may_be_kept_ = false;
  body_.clear();
  dropped_ = 0;
  sent_ = Sent::kNo;
  opened_ = answered_ = too_early_ = unread_ = excess_ = full_ = false;
}

void HttpConnection::set_up(const HttpClientOptions& options, milliseconds time) {
  set(CURLOPT_ERRORBUFFER, error_.data());
  set(CURLOPT_NOSIGNAL, 1L);
  set(CURLOPT_PROTOCOLS_STR, "http,https");
  set(CURLOPT_FOLLOWLOCATION, 0L);
  set(CURLOPT_PATH_AS_IS, 1L);
  set(CURLOPT_NETRC, static_cast<long>(CURL_NETRC_IGNORED));
  // Not those of the environment, which would see what is for the host alone.
  set(CURLOPT_PROXY, "");
  // A resolver that hangs is not waited for.
  set(CURLOPT_QUICK_EXIT, 1L);
  // One request at a time is on a connection, and of those that idle servers close the old ones.
  set(CURLOPT_HTTP_VERSION, static_cast<long>(CURL_HTTP_VERSION_1_1));
  set(CURLOPT_MAXAGE_CONN, kMostIdle.count());
  set(CURLOPT_FORBID_REUSE, options.keep_alive ? 0L : 1L);
  set(CURLOPT_TIMEOUT_MS, static_cast<long>(time.count()));
  set(CURLOPT_CONNECTTIMEOUT_MS, static_cast<long>(std::min(time, kConnectTime).count()));
  set(CURLOPT_SSL_VERIFYPEER, 1L);
  set(CURLOPT_SSL_VERIFYHOST, 2L);
  if (!options.ca_file.empty()) {
    set(CURLOPT_CAINFO, options.ca_file.c_str());
    // Only this one: the system's are not asked beside it.
    set(CURLOPT_CAPATH, static_cast<const char*>(nullptr));
  }
  if (!options.certificate.empty()) {
    set(CURLOPT_SSLCERT, options.certificate.c_str());
    set(CURLOPT_SSLKEY, options.private_key.c_str());
    // Else a terminal would be asked.
    set(CURLOPT_KEYPASSWD, "");
  }
  set(CURLOPT_WRITEFUNCTION, &HttpConnection::take_body);
  set(CURLOPT_WRITEDATA, this);
  set(CURLOPT_HEADERFUNCTION, &HttpConnection::take_header);
  set(CURLOPT_HEADERDATA, this);
  set(CURLOPT_PREREQFUNCTION, &HttpConnection::before_request);
  set(CURLOPT_PREREQDATA, this);
  set_up_sockets();
}

void HttpConnection::set_up_sockets() {
  set(CURLOPT_OPENSOCKETFUNCTION, &HttpConnection::open_socket);
  set(CURLOPT_OPENSOCKETDATA, this);
  set(CURLOPT_CLOSESOCKETFUNCTION, &HttpConnection::close_socket);
  set(CURLOPT_CLOSESOCKETDATA, this);
  set(CURLOPT_DEBUGFUNCTION, &HttpConnection::take_note);
  set(CURLOPT_DEBUGDATA, this);
  set(CURLOPT_VERBOSE, 1L);
}

void HttpConnection::set_up_request(const HttpRequest& request) {
  set(CURLOPT_URL, request.url.c_str());
  to_send_ = request.has_body ? static_cast<curl_off_t>(request.body.size()) : 0;
  if (request.has_body) {
    set(CURLOPT_POST, 1L);
    set(CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(request.body.size()));
    set(CURLOPT_POSTFIELDS, request.body.c_str());
  } else if (request.method != "GET" && request.method != "DELETE") {
    set(CURLOPT_POST, 1L);
    set(CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(0));
  }
  set(CURLOPT_CUSTOMREQUEST, request.method.c_str());
}

CURLcode HttpConnection::transfer() {
  if (stop_.stop_requested())
    return CURLE_ABORTED_BY_CALLBACK;
  const Added added(multi_, easy_);
  // A wake-up before the poll ends that poll. The callback is gone before multi_ is.
  const std::stop_callback wake(stop_, [this] { (void)curl_multi_wakeup(multi_); });
  while (true) {
    int number = 0;
    if (curl_multi_perform(multi_, &number) != CURLM_OK)
      return CURLE_FAILED_INIT;
    while (const auto* const message = curl_multi_info_read(multi_, &number)) {
      if (message->msg == CURLMSG_DONE)
        return message->data.result;
    }
    // After the look for the end: a response that is there counts.
    if (stop_.stop_requested())
      return CURLE_ABORTED_BY_CALLBACK;
    if (curl_multi_poll(multi_, nullptr, 0, static_cast<int>(kLongestPoll.count()), nullptr) !=
        CURLM_OK)
      return CURLE_FAILED_INIT;
  }
}

/// libcurl's texts name hosts and certificates, and no more.
std::string HttpConnection::text_of(CURLcode code) const {
  if (sent_ == Sent::kAgain)
    return "the remote service closed the kept connection";
  if (too_early_)
    return "a response started before the server had received the request";
  if (code == CURLE_ABORTED_BY_CALLBACK && stop_.stop_requested())
    return "the call was stopped";
  return error_[0] == '\0' ? curl_easy_strerror(code) : error_.data();
}

bool HttpConnection::socket_has_unread() const {
  return std::ranges::any_of(sockets_, [](curl_socket_t socket) {
    char byte = 0;
    // The end of the stream is input as well.
    return ::recv(socket, &byte, 1, MSG_PEEK | MSG_DONTWAIT) >= 0 ||
           (errno != EAGAIN && errno != EWOULDBLOCK);
  });
}

/// Bytes that TLS has decrypted and libcurl has not asked for: it reads no further than a body's
/// Content-Length, a record may. Known of OpenSSL only; with other libraries nothing is kept.
bool HttpConnection::tls_has_unread() const {
  if (!is_tls_)
    return false;
  curl_tlssessioninfo* session = nullptr;
  if (curl_easy_getinfo(easy_, CURLINFO_TLS_SSL_PTR, &session) != CURLE_OK || session == nullptr ||
      session->backend != CURLSSLBACKEND_OPENSSL || session->internals == nullptr)
    return true;
  return SSL_has_pending(static_cast<const SSL*>(session->internals)) == 1;
}

std::size_t HttpConnection::take_body(char* data, std::size_t size, std::size_t count, void* self) {
  auto& connection = *static_cast<HttpConnection*>(self);
  const auto bytes = size * count;
  const auto room = connection.most_ - std::min(connection.most_, connection.body_.size());
  try {
    connection.body_.append(data, std::min(room, bytes));
  } catch (const std::bad_alloc&) {
    return 0;
  }
  connection.dropped_ += bytes - std::min(room, bytes);
  connection.full_ = connection.dropped_ > kMostDropped;
  return connection.full_ ? 0 : bytes;
}

/// The kernel has all of the request.
bool HttpConnection::has_sent_all() const {
  curl_off_t sent = 0;
  return curl_easy_getinfo(easy_, CURLINFO_SIZE_UPLOAD_T, &sent) != CURLE_OK || sent >= to_send_;
}

/// On a connection that was kept, a response that is there before the request has arrived answers
/// none of ours. On a new one a server may refuse a request of which it has read the head.
std::size_t HttpConnection::take_header(char* /*data*/, std::size_t size, std::size_t count,
                                        void* self) {
  auto& connection = *static_cast<HttpConnection*>(self);
  if (!connection.opened_ && !std::exchange(connection.answered_, true))
    connection.too_early_ =
        !connection.has_sent_all() || std::ranges::any_of(connection.sockets_, has_unacknowledged);
  return connection.too_early_ ? 0 : size * count;
}

/// The last moment before the request is sent. libcurl sends it once more, by itself, when a
/// connection that was kept open turns out to be closed. That would be an attempt that nobody knows
/// of.
int HttpConnection::before_request(void* self, char* /*primary_ip*/, char* /*local_ip*/,
                                   int /*primary_port*/, int /*local_port*/) {
  auto& connection = *static_cast<HttpConnection*>(self);
  if (connection.sent_ != Sent::kNo) {
    connection.sent_ = Sent::kAgain;
    return CURL_PREREQFUNC_ABORT;
  }
  if (connection.stop_.stop_requested())
    return CURL_PREREQFUNC_ABORT;
  // A new TLS connection has session tickets to read, which are no response.
  if (!connection.opened_ && (connection.socket_has_unread() || connection.tls_has_unread())) {
    connection.unread_ = true;
    return CURL_PREREQFUNC_ABORT;
  }
  connection.sent_ = Sent::kOnce;
  return CURL_PREREQFUNC_OK;
}

curl_socket_t HttpConnection::open_socket(void* self, curlsocktype /*purpose*/,
                                          curl_sockaddr* address) {
  auto& connection = *static_cast<HttpConnection*>(self);
  const auto socket =
      ::socket(address->family, address->socktype | SOCK_CLOEXEC, address->protocol);
  if (socket < 0)
    return CURL_SOCKET_BAD;
  try {
    connection.sockets_.push_back(socket);
  } catch (const std::bad_alloc&) {
    ::close(socket);
    return CURL_SOCKET_BAD;
  }
  connection.opened_ = true;
  return socket;
}

int HttpConnection::close_socket(void* self, curl_socket_t socket) {
  std::erase(static_cast<HttpConnection*>(self)->sockets_, socket);
  return ::close(socket);
}

/// libcurl closes a connection by itself when bytes follow a body of a known length. Of those that
/// follow the last chunk, or a response without a body, only its log has a word.
int HttpConnection::take_note(CURL* /*handle*/, curl_infotype type, char* data, std::size_t size,
                              void* self) {
  const std::string_view text(data, size);
  if (type == CURLINFO_TEXT && (text.find("xcess found") != std::string_view::npos ||
                                text.find("eftovers after chunking") != std::string_view::npos))
    static_cast<HttpConnection*>(self)->excess_ = true;
  return 0;
}

}  // namespace pawl::handlers
