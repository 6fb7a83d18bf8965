#pragma once

#include <functional>
#include <memory>

#include "ops/http_server.hpp"
#include "ops/metrics.hpp"
#include "ops/monitoring.hpp"
#include "pawl/options.hpp"

namespace pawl::cli {

/// Counts for [monitoring]; nullptr: nobody asked for it.
std::shared_ptr<ops::MetricsObserver> make_metrics(const Options& options);

/// Serves them; nullptr where there are none. `look` adds what its process knows, and is called on
/// the server's threads. Throws FatalError.
std::unique_ptr<ops::HttpServer> serve_metrics(const Options& options,
                                               std::shared_ptr<ops::MetricsObserver> metrics,
                                               std::function<void(ops::ProcessLook&)> look);

}  // namespace pawl::cli
