#pragma once

#include <functional>
#include <memory>
#include <string>

#include "dashboard/dashboard.hpp"
#include "ops/http_server.hpp"
#include "ops/metrics.hpp"
#include "ops/monitoring.hpp"
#include "pawl/handler.hpp"
#include "pawl/options.hpp"

namespace pawl::cli {

/// Counts for [monitoring]; nullptr: nobody asked for it.
std::shared_ptr<ops::MetricsObserver> make_metrics(const Options& options);

/// What a process serves over HTTP: what programs ask of it, and the dashboard.
class Monitoring {
 public:
  /// `dashboard` may be null. Listens from here on; throws FatalError that names `option`.
  Monitoring(const config::ListenAddress& address, ops::HttpServer::Handler handler,
             std::unique_ptr<dashboard::Dashboard> dashboard, const std::string& option);

  /// Takes no more requests. False: one is still under way after some seconds, and the destructor
  /// would wait for it.
  bool finish();

 private:
  const std::unique_ptr<dashboard::Dashboard> dashboard_;
  ops::HttpServer server_;
};

/// Serves them, and the dashboard of the consumer where the options name one; nullptr where there
/// are none. `look` adds what its process knows, and is called on the server's threads. The options
/// and the registry outlive it. Throws FatalError.
std::unique_ptr<Monitoring> serve_metrics(const Options& options, const Registry& registry,
                                          std::shared_ptr<ops::MetricsObserver> metrics,
                                          std::function<void(ops::ProcessLook&)> look);

}  // namespace pawl::cli
