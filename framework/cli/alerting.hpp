#pragma once

#include <functional>
#include <memory>
#include <string>

#include "cli/monitoring.hpp"
#include "ops/alerts.hpp"
#include "ops/log_observer.hpp"
#include "pawl/options.hpp"

namespace pawl::cli {

/// The alerts of a process that runs, whose failures go to its log; nullptr when nobody is to be
/// told. Throws BadCall.
std::shared_ptr<ops::AlertObserver> make_alerts(const Options& options,
                                                const std::shared_ptr<ops::LogObserver>& log);

/// Sends what is due, and ends `monitoring` (null: there is none). Where a connection of either
/// still waits for something then, the process ends now, or, if it is to go on `anew` (behind a
/// reload that no end has overtaken), begins anew, which returns only if it cannot, with the
/// reason.
int end_with(int code, const std::shared_ptr<ops::AlertObserver>& alerts, Monitoring* monitoring,
             const std::function<bool()>& anew = {},
             const std::function<std::string()>& begin_anew = {});

}  // namespace pawl::cli
