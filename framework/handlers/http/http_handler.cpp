#include "handlers/http/http_handler.hpp"

#include <curl/curl.h>
#include <fmt/format.h>

#include <chrono>
#include <utility>

#include "pawl/errors.hpp"

namespace pawl::handlers {
namespace {

using std::chrono::milliseconds;

/// For the process, once; libcurl's own clean-up may run before a static's.
void start_curl() {
  static const CURLcode started = curl_global_init(CURL_GLOBAL_DEFAULT);
  if (started != CURLE_OK)
    throw FatalError(fmt::format("libcurl cannot start: {}", curl_easy_strerror(started)));
}

/// Errors before a request is sent, because no connection (including TLS) was established.
bool is_without_connection(CURLcode code) {
  switch (code) {
    case CURLE_COULDNT_RESOLVE_HOST:
    case CURLE_COULDNT_CONNECT:
    case CURLE_OPERATION_TIMEDOUT:
    case CURLE_SEND_ERROR:
    case CURLE_RECV_ERROR:
    case CURLE_SSL_CONNECT_ERROR:
    case CURLE_SSL_CERTPROBLEM:
    case CURLE_SSL_CIPHER:
    case CURLE_SSL_CACERT_BADFILE:
    case CURLE_SSL_ISSUER_ERROR:
    case CURLE_SSL_INVALIDCERTSTATUS:
    case CURLE_PEER_FAILED_VERIFICATION:
      return true;
    default:
      return false;
  }
}

}  // namespace

HttpHandler::HttpHandler(const HttpOptions& options, std::size_t max_response)
    : request_(options),
      remote_(request_.origin()),
      statuses_{StatusSet::parse(options.success).value(),
                StatusSet::parse(options.not_done).value(), StatusSet::parse(options.retry).value(),
                StatusSet::parse(options.permanent).value(),
                StatusSet::parse(options.outage).value()},
      key_header_(options.key_header),
      client_{.max_response = max_response,
              .ca_file = options.ca_file,
              .certificate = options.certificate,
              .private_key = options.private_key,
              .keep_alive = options.keep_alive},
      max_calls_(options.max_in_flight) {
  start_curl();
}

HttpHandler::~HttpHandler() = default;

/// Null: none is kept.
std::unique_ptr<HttpConnection> HttpHandler::take() const {
  const std::scoped_lock lock(mutex_);
  if (idle_.empty())
    return nullptr;
  auto connection = std::move(idle_.back());
  idle_.pop_back();
  return connection;
}

void HttpHandler::put_back(std::unique_ptr<HttpConnection> connection) const {
  const std::scoped_lock lock(mutex_);
  idle_.push_back(std::move(connection));
}

/// On a connection that was kept, or on a new one where none is free of unread input.
HttpResult HttpHandler::run(const HttpRequest& request, const Lease& lease) const {
  while (true) {
    const auto time =
        std::chrono::ceil<milliseconds>(lease.deadline() - std::chrono::steady_clock::now());
    if (time.count() <= 0)
      throw NotDone("the call's timeout expired before the request was sent");
    auto connection = take();
    const bool kept = connection != nullptr;
    if (!kept)
      connection = std::make_unique<HttpConnection>();
    auto result = connection->run(client_, request, time, lease.stop_token());
    if (connection->may_be_kept())
      put_back(std::move(connection));
    if (!kept || !result.unread)
      return result;
  }
}

Response HttpHandler::call(Lease& lease, const Message& message) const {
  thread_local message::JsonReader reader;
  message::JsonView json(reader, message);
  auto request = request_.render(message, json);
  if (!key_header_.empty())
    request.headers.push_back(fmt::format("{}: {}", key_header_, lease.key()));
  auto answer = run(request, lease);
  const bool whole = answer.code == CURLE_OK || answer.full;
  const auto meaning = meaning_of(
      {answer.sent, !is_without_connection(answer.code), whole, answer.status}, statuses_);
  const auto what = fmt::format("HTTP status {}", answer.status);
  switch (meaning) {
    case CallMeaning::kDone:
      return std::move(answer.body);
    case CallMeaning::kUnreachable:
      throw RemoteOutage("no request was sent: " + answer.text, false);
    case CallMeaning::kNotSent:
      throw NotDone("no request was sent: " + answer.text);
    case CallMeaning::kNoAnswer:
      throw UnknownAnswer("the request was sent, but no response was received: " + answer.text);
    case CallMeaning::kOutage:
      throw RemoteOutage(what, true, answer.retry_after);
    case CallMeaning::kNotDone:
      throw NotDoneThere(what, answer.retry_after);
    case CallMeaning::kUnknown:
      throw UnknownAnswer(what, answer.retry_after);
    case CallMeaning::kPermanent:
      break;
  }
  throw PermanentError(what);
}

std::optional<std::string> HttpHandler::probe() const {
  HttpConnection connection;
  const auto answer = connection.connect(client_, remote_);
  return answer.code == CURLE_OK ? "" : answer.text;
}

}  // namespace pawl::handlers
