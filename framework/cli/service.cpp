#include "cli/service.hpp"

#include <algorithm>
#include <utility>

namespace pawl::cli {
namespace {

using std::chrono::milliseconds;

/// How often the line is looked at where nothing is watched.
constexpr milliseconds kLine{5000};

}  // namespace

WatchdogTimes watchdog_times(milliseconds watchdog) {
  const auto interval = std::clamp(watchdog / 4, milliseconds{1}, kLine);
  return {interval, std::max(watchdog - 2 * interval, interval)};
}

Service::Service(ops::ServiceManager manager, Facts facts)
    : manager_(std::move(manager)), facts_(std::move(facts)) {
  if (!manager_.is_there())
    return;
  manager_.ready();
  tick();
  const auto interval = manager_.watchdog() ? watchdog_times(*manager_.watchdog()).interval : kLine;
  ticker_.start(interval, [this] { tick(); });
}

Service::~Service() {
  ticker_.stop();
}

void Service::tick() {
  if (const auto watchdog = manager_.watchdog();
      watchdog && facts_.silent_for() < watchdog_times(*watchdog).patience)
    manager_.alive();
  if (ending_)
    return;
  auto line = facts_.line();
  if (line != told_ && manager_.status(line))
    told_ = std::move(line);
}

void Service::stopping() {
  if (!ending_.exchange(true))
    manager_.stopping();
}

void Service::reloading() {
  if (!ending_.exchange(true))
    manager_.reloading();
}

}  // namespace pawl::cli
