#pragma once

#include <functional>
#include <memory>
#include <string>

#include "config/listen_address.hpp"
#include "ops/http_message.hpp"

namespace pawl::ops {

/// Of cpp-httplib.
[[nodiscard]] std::string http_library_version();

/// Serves HTTP/1.1, a few requests at a time and one a connection, on threads of its own. A request
/// has to be there, and its answer taken, within seconds, however its bytes trickle; what a client
/// sends beyond a small head or a form is not read, further clients wait in the system's queue, and
/// pages never have all threads, so that programs are answered beside them.
class HttpServer {
 public:
  /// Called on its threads, several at a time.
  using Handler = std::function<HttpAnswer(const HttpRequest&)>;

  /// Listens from here on. `handler` gets what `pages` do not serve. Throws FatalError that names
  /// `option`.
  HttpServer(const config::ListenAddress& address, Handler handler, Pages pages = {},
             std::string option = "monitoring.listen");
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
