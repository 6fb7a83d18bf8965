#pragma once

#include <functional>
#include <memory>
#include <string>

#include "config/listen_address.hpp"
#include "ops/monitoring.hpp"

namespace pawl::ops {

/// Serves GET and HEAD over HTTP/1.1, a few requests at a time and one a connection, on threads of
/// its own: what they wait for ends after seconds, what a client sends beyond a small head is not
/// read, and further clients wait in the system's queue.
class HttpServer {
 public:
  /// Called on its threads, several at a time.
  using Handler = std::function<HttpAnswer(const std::string& method, const std::string& path)>;

  /// Listens from here on. Throws FatalError that names monitoring.listen.
  HttpServer(const config::ListenAddress& address, Handler handler);
  /// Waits for what is served.
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  /// Takes no more requests. False: one is still under way after some seconds, and the destructor
  /// would wait for it.
  bool finish();

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace pawl::ops
