#include "handlers/http/http_handler.hpp"

#include <curl/curl.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <new>
#include <stdexcept>
#include <stop_token>
#include <utility>

#include "handlers/handler_statement.hpp"
#include "pawl/errors.hpp"

namespace pawl::handlers {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kConnectTime{10000};
constexpr std::chrono::duration<long> kMostIdle{20};
/// An answer that is longer than what is kept is read so much further, for the connection to be
/// used again.
constexpr std::size_t kMostDropped = std::size_t{1} << 20U;
constexpr milliseconds kLongestRetryAfter{std::chrono::hours(1)};

/// For the process, once; libcurl's own clean-up may run before a static's.
void start_curl() {
  static const CURLcode started = curl_global_init(CURL_GLOBAL_DEFAULT);
  if (started != CURLE_OK)
    throw FatalError(fmt::format("libcurl cannot start: {}", curl_easy_strerror(started)));
}

struct FreeList {
  void operator()(curl_slist* list) const { curl_slist_free_all(list); }
};
using HeaderList = std::unique_ptr<curl_slist, FreeList>;

/// What is told of a failed transfer: libcurl's texts name hosts and certificates, and no more.
std::string told(CURLcode code, const char* detail) {
  return detail[0] == '\0' ? curl_easy_strerror(code) : detail;
}

}  // namespace

/// A handle of libcurl's, which keeps its connection open between requests. One thread at a time.
class HttpHandler::Connection {
 public:
  Connection() : handle_(curl_easy_init()) {
    if (handle_ == nullptr)
      throw NotDone("libcurl has no memory for a connection");
  }
  ~Connection() { curl_easy_cleanup(handle_); }
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  enum class Sent { kNo, kOnce, kAgain };

  struct Answer {
    CURLcode code = CURLE_OK;
    std::string text;  ///< of what failed
    long status = 0;
    bool sent = false;  ///< some of the request may have left
    bool full = false;  ///< more of the body came than is kept
    milliseconds retry_after{0};
    std::string body;
  };

  /// `time`: for all of it.
  Answer run(const HttpHandler& handler, const HttpRequest& request, milliseconds time,
             std::stop_token stop) {
    curl_easy_reset(handle_);
    body_.clear();
    sent_ = Sent::kNo;
    full_ = false;
    dropped_ = 0;
    stop_ = std::move(stop);
    most_ = handler.max_response_;
    error_.fill('\0');
    set_up(handler, time);
    HeaderList headers;
    for (const auto& header : request.headers)
      add(headers, header);
    // Else libcurl waits for "100 Continue" with larger bodies, and names a form's type.
    add(headers, "Expect:");
    set(CURLOPT_HTTPHEADER, headers.get());
    set(CURLOPT_URL, request.url.c_str());
    if (request.has_body) {
      set(CURLOPT_POST, 1L);
      set(CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(request.body.size()));
      set(CURLOPT_POSTFIELDS, request.body.c_str());
    } else if (request.method != "GET" && request.method != "DELETE") {
      set(CURLOPT_POST, 1L);
      set(CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(0));
    }
    set(CURLOPT_CUSTOMREQUEST, request.method.c_str());
    Answer answer;
    answer.code = curl_easy_perform(handle_);
    finish(answer);
    return answer;
  }

  Answer connect(const HttpHandler& handler, const std::string& url) {
    error_.fill('\0');
    set_up(handler, kConnectTime);
    // Nothing is requested.
    set(CURLOPT_PREREQFUNCTION, static_cast<curl_prereq_callback>(nullptr));
    set(CURLOPT_URL, url.c_str());
    set(CURLOPT_CONNECT_ONLY, 1L);
    Answer answer;
    answer.code = curl_easy_perform(handle_);
    answer.text = told(answer.code, error_.data());
    return answer;
  }

 private:
  template <typename Value>
  void set(CURLoption option, Value value) {
    const auto code = curl_easy_setopt(handle_, option, value);
    if (code != CURLE_OK)
      throw NotDone(fmt::format("libcurl refuses an option: {}", curl_easy_strerror(code)));
  }

  static void add(HeaderList& headers, const std::string& header) {
    // A header without a value is written with a semicolon for libcurl, which removes it else.
    const auto colon = header.find(':');
    const bool empty = colon != std::string::npos && colon + 1 < header.size() &&
                       header.find_first_not_of(' ', colon + 1) == std::string::npos;
    const auto line = empty ? header.substr(0, colon) + ";" : header;
    auto* const longer = curl_slist_append(headers.get(), line.c_str());
    if (longer == nullptr)
      throw NotDone("libcurl has no memory for a header");
    (void)headers.release();
    headers.reset(longer);
  }

  void set_up(const HttpHandler& handler, milliseconds time) {
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
    set(CURLOPT_TIMEOUT_MS, static_cast<long>(time.count()));
    set(CURLOPT_CONNECTTIMEOUT_MS, static_cast<long>(std::min(time, kConnectTime).count()));
    set(CURLOPT_SSL_VERIFYPEER, 1L);
    set(CURLOPT_SSL_VERIFYHOST, 2L);
    if (!handler.ca_file_.empty()) {
      set(CURLOPT_CAINFO, handler.ca_file_.c_str());
      // Only this one: the system's are not asked beside it.
      set(CURLOPT_CAPATH, static_cast<const char*>(nullptr));
    }
    if (!handler.certificate_.empty()) {
      set(CURLOPT_SSLCERT, handler.certificate_.c_str());
      set(CURLOPT_SSLKEY, handler.private_key_.c_str());
      // Else a terminal would be asked.
      set(CURLOPT_KEYPASSWD, "");
    }
    set(CURLOPT_WRITEFUNCTION, &Connection::take_body);
    set(CURLOPT_WRITEDATA, this);
    set(CURLOPT_PREREQFUNCTION, &Connection::before_request);
    set(CURLOPT_PREREQDATA, this);
    set(CURLOPT_NOPROGRESS, 0L);
    set(CURLOPT_XFERINFOFUNCTION, &Connection::look_up);
    set(CURLOPT_XFERINFODATA, this);
  }

  void finish(Answer& answer) {
    curl_easy_getinfo(handle_, CURLINFO_RESPONSE_CODE, &answer.status);
    curl_off_t seconds = 0;
    if (curl_easy_getinfo(handle_, CURLINFO_RETRY_AFTER, &seconds) == CURLE_OK && seconds > 0) {
      answer.retry_after = std::min<milliseconds>(
          kLongestRetryAfter, std::chrono::seconds(std::min<curl_off_t>(seconds, 3600)));
    }
    answer.sent = sent_ != Sent::kNo;
    answer.full = full_;
    answer.text = sent_ == Sent::kAgain
                      ? "the connection that was kept open was closed by the other side"
                      : told(answer.code, error_.data());
    answer.body = std::move(body_);
  }

  static std::size_t take_body(char* data, std::size_t size, std::size_t count, void* self) {
    auto& connection = *static_cast<Connection*>(self);
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

  /// libcurl sends a request once more, by itself, when a connection that was kept open turns out
  /// to be closed. That would be an attempt that nobody knows of.
  static int before_request(void* self, char* /*primary_ip*/, char* /*local_ip*/,
                            int /*primary_port*/, int /*local_port*/) {
    auto& sent = static_cast<Connection*>(self)->sent_;
    sent = sent == Sent::kNo ? Sent::kOnce : Sent::kAgain;
    return sent == Sent::kOnce ? CURL_PREREQFUNC_OK : CURL_PREREQFUNC_ABORT;
  }

  static int look_up(void* self, curl_off_t /*to_come*/, curl_off_t /*came*/, curl_off_t /*to_go*/,
                     curl_off_t /*gone*/) {
    return static_cast<Connection*>(self)->stop_.stop_requested() ? 1 : 0;
  }

  CURL* handle_;
  std::array<char, CURL_ERROR_SIZE> error_{};
  std::string body_;
  std::size_t most_ = 0;
  std::size_t dropped_ = 0;
  Sent sent_ = Sent::kNo;
  bool full_ = false;
  std::stop_token stop_;
};

HttpHandler::HttpHandler(std::string label, const HttpOptions& options, std::size_t max_response)
    : label_(std::move(label)),
      request_(options),
      remote_(request_.origin()),
      statuses_{StatusSet::parse(options.success).value(),
                StatusSet::parse(options.not_done).value(), StatusSet::parse(options.retry).value(),
                StatusSet::parse(options.permanent).value()},
      key_header_(options.key_header),
      max_response_(max_response),
      max_calls_(options.max_calls),
      ca_file_(options.ca_file),
      certificate_(options.certificate),
      private_key_(options.private_key) {
  start_curl();
}

HttpHandler::~HttpHandler() = default;

std::unique_ptr<HttpHandler::Connection> HttpHandler::take() const {
  {
    const std::scoped_lock lock(mutex_);
    if (!idle_.empty()) {
      auto connection = std::move(idle_.back());
      idle_.pop_back();
      return connection;
    }
  }
  return std::make_unique<Connection>();
}

void HttpHandler::put_back(std::unique_ptr<Connection> connection) const {
  const std::scoped_lock lock(mutex_);
  idle_.push_back(std::move(connection));
}

Response HttpHandler::call(Lease& lease, const Message& message) const {
  thread_local message::JsonReader reader;
  message::JsonView json(reader, message);
  auto request = request_.render(message, json);
  if (!key_header_.empty())
    request.headers.push_back(fmt::format("{}: {}", key_header_, lease.key()));
  const auto time =
      std::chrono::ceil<milliseconds>(lease.deadline() - std::chrono::steady_clock::now());
  if (time.count() <= 0)
    throw NotDone("there is no time left for the request");
  auto connection = take();
  auto answer = connection->run(*this, request, time, lease.stop_token());
  put_back(std::move(connection));
  const auto name = handler_text(label_);
  const bool whole = answer.code == CURLE_OK || answer.full;
  const auto meaning = meaning_of({answer.sent, whole, answer.status}, statuses_);
  const auto what = fmt::format("{}: the answer is {}", name, answer.status);
  switch (meaning) {
    case CallMeaning::kDone:
      return std::move(answer.body);
    case CallMeaning::kNotSent:
      throw NotDone(fmt::format("{}: nothing was sent: {}", name, answer.text));
    case CallMeaning::kNoAnswer:
      throw UnknownAnswer(fmt::format("{}: the request was sent, and its answer is not there: {}",
                                      name, answer.text));
    case CallMeaning::kNotDone:
      throw NotDone(what, answer.retry_after);
    case CallMeaning::kUnknown:
      throw UnknownAnswer(what, answer.retry_after);
    case CallMeaning::kPermanent:
      break;
  }
  throw PermanentError(what);
}

std::optional<std::string> HttpHandler::probe() const {
  Connection connection;
  const auto answer = connection.connect(*this, remote_);
  return answer.code == CURLE_OK ? "" : answer.text;
}

}  // namespace pawl::handlers
