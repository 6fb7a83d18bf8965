#include "cli/monitoring.hpp"

#include <chrono>
#include <utility>

#include "cli/version.hpp"
#include "config/listen_address.hpp"

namespace pawl::cli {
namespace {

ops::Pages pages_of(dashboard::Dashboard* dashboard) {
  if (dashboard == nullptr)
    return {};
  return {[](const std::string& path) { return !ops::is_for_programs(path); },
          [dashboard](const ops::HttpRequest& request) { return dashboard->answer(request); }};
}

}  // namespace

std::shared_ptr<ops::MetricsObserver> make_metrics(const Options& options) {
  return options.monitoring.listen.empty()
             ? nullptr
             : std::make_shared<ops::MetricsObserver>(options.outbox.alert_age);
}

Monitoring::Monitoring(const config::ListenAddress& address, ops::HttpServer::Handler handler,
                       std::unique_ptr<dashboard::Dashboard> dashboard, const std::string& option)
    : dashboard_(std::move(dashboard)),
      server_(address, std::move(handler), pages_of(dashboard_.get()), option) {}

bool Monitoring::finish() {
  const bool served = server_.finish();
  return (!dashboard_ || dashboard_->finish()) && served;
}

std::unique_ptr<Monitoring> serve_metrics(const Options& options, const Registry& registry,
                                          std::shared_ptr<ops::MetricsObserver> metrics,
                                          std::function<void(ops::ProcessLook&)> look) {
  if (!metrics)
    return nullptr;
  const auto address = config::parse_listen_address(options.monitoring.listen);
  ops::ProcessLook process;
  process.version = pawl_version();
  process.cluster = options.kafka.cluster;
  process.group = options.kafka.group;
  return std::make_unique<Monitoring>(
      address.value(),
      [metrics = std::move(metrics), look = std::move(look), process,
       names = ops::HostNames(ops::machine_name(), options.monitoring.hosts)](
          const ops::HttpRequest& request) {
        auto now = process;
        now.now = std::chrono::floor<std::chrono::milliseconds>(std::chrono::system_clock::now());
        look(now);
        return ops::answer(request, names, *metrics, now);
      },
      options.kafka.group.empty() ? nullptr
                                  : std::make_unique<dashboard::Dashboard>(options, registry),
      "monitoring.listen");
}

}  // namespace pawl::cli
