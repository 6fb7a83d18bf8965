#include "cli/alerting.hpp"

#include <unistd.h>

#include <iostream>

#include "console/commands.hpp"
#include "engine/observers.hpp"

namespace pawl::cli {

std::shared_ptr<ops::AlertObserver> make_alerts(const Options& options,
                                                const std::shared_ptr<ops::LogObserver>& log) {
  if (!ops::AlertObserver::wanted(options.alerts))
    return nullptr;
  return std::make_shared<ops::AlertObserver>(options, [log](const std::string& problem) {
    log->on_event(engine::warning_event(Warning::kAlertFailed, problem));
  });
}

int end_with(int code, const std::shared_ptr<ops::AlertObserver>& alerts, Monitoring* monitoring,
             const std::function<bool()>& anew, const std::function<std::string()>& begin_anew) {
  const bool served = monitoring == nullptr || monitoring->finish();
  if ((!alerts || alerts->finish()) && served)
    return code;
  // Their threads wait for somebody, so nothing that they use may be taken down.
  if (!anew || !anew())
    ::_exit(code);
  std::cerr << begin_anew() << std::endl;
  ::_exit(kFailed);
}

}  // namespace pawl::cli
