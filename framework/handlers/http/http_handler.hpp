#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "handlers/http/http_connection.hpp"
#include "handlers/http/request_template.hpp"
#include "handlers/http/status_set.hpp"
#include "handlers/leased_handler.hpp"

namespace pawl::handlers {

/// A leased handler without code: one HTTP request for each message, by libcurl. Follows no
/// redirects and repeats nothing by itself. Never says headers or bodies.
class HttpHandler final : public LeasedHandler {
 public:
  /// `max_response`: bytes of the answer that are kept.
  HttpHandler(const HttpOptions& options, std::size_t max_response);
  ~HttpHandler() override;

  Response call(Lease& lease, const Message& message) const override;
  [[nodiscard]] std::uint32_t max_calls() const override { return max_calls_; }

  [[nodiscard]] std::optional<std::string> probe() const override;
  [[nodiscard]] const std::string& remote() const override { return remote_; }

 private:
  [[nodiscard]] std::unique_ptr<HttpConnection> take() const;
  void put_back(std::unique_ptr<HttpConnection> connection) const;
  [[nodiscard]] HttpResult run(const HttpRequest& request, const Lease& lease) const;

  RequestTemplate request_;
  std::string remote_;
  StatusSets statuses_;
  std::string key_header_;
  HttpClientOptions client_;
  std::uint32_t max_calls_;

  mutable std::mutex mutex_;
  mutable std::vector<std::unique_ptr<HttpConnection>> idle_;  // guarded by mutex_
};

}  // namespace pawl::handlers
