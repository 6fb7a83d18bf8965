#include "cli/monitoring.hpp"

#include <chrono>
#include <utility>

#include "cli/version.hpp"
#include "config/listen_address.hpp"

namespace pawl::cli {

std::shared_ptr<ops::MetricsObserver> make_metrics(const Options& options) {
  return options.monitoring.listen.empty() ? nullptr : std::make_shared<ops::MetricsObserver>();
}

std::unique_ptr<ops::HttpServer> serve_metrics(const Options& options,
                                               std::shared_ptr<ops::MetricsObserver> metrics,
                                               std::function<void(ops::ProcessLook&)> look) {
  if (!metrics)
    return nullptr;
  const auto address = config::parse_listen_address(options.monitoring.listen);
  ops::ProcessLook process;
  process.version = pawl_version();
  process.cluster = options.kafka.cluster;
  process.group = options.kafka.group;
  return std::make_unique<ops::HttpServer>(
      address.value(), [metrics = std::move(metrics), look = std::move(look), process](
                           const std::string& method, const std::string& path) {
        auto now = process;
        now.now = std::chrono::floor<std::chrono::milliseconds>(std::chrono::system_clock::now());
        look(now);
        return ops::answer(method, path, *metrics, now);
      });
}

}  // namespace pawl::cli
