#pragma once

#include <functional>
#include <optional>
#include <string>

#include "cli/service.hpp"
#include "config/files.hpp"
#include "console/commands.hpp"
#include "ops/log_observer.hpp"
#include "ops/service_manager.hpp"
#include "pawl/options.hpp"

namespace pawl::cli {

/// The configuration of a command that reloads. Behind a reload this process becomes the program as
/// it is installed now, with the same arguments and process id. That one is given the files as they
/// were checked, because they may have changed by the time that everything in hand is finished.
class Reload {
 public:
  using Read = std::function<Options(config::Files&)>;

  /// Reads what a reload has left for this process, or the files themselves. Throws what `read`
  /// throws. Call before any other thread starts.
  Reload(const Program& program, Read read);
  ~Reload();
  Reload(const Reload&) = delete;
  Reload& operator=(const Reload&) = delete;

  /// With which this process begins.
  [[nodiscard]] const Options& options() const { return options_; }
  [[nodiscard]] const ops::ServiceManager& manager() const { return manager_; }

  /// Whether the configuration as it is now can be begun with, which is told. `check` throws what
  /// is wrong with it.
  [[nodiscard]] bool accepts(const std::function<void(const Options&)>& check,
                             ops::LogObserver& log, Service& service);

  /// Returns only if that cannot be, with the reason. What other threads do ends with it.
  [[nodiscard]] std::string begin_anew() const;

 private:
  /// Nullopt: nothing speaks against it.
  std::optional<std::string> problem_of(const std::function<void(const Options&)>& check);
  void keep(const config::Files& files);

  const Program& program_;
  const Read read_;
  const Options options_;
  const ops::ServiceManager manager_;
  int accepted_ = -1;  ///< the files that were checked, in memory
};

/// How a command that reloads has ended.
struct Ended {
  int code = kDone;
  bool anew = false;  ///< by a reload
};

/// Runs it with the configuration that `read` gives; returns its exit code. Throws FatalError if
/// this process cannot begin anew behind a reload.
int run_with_reload(const Program& program, Reload::Read read,
                    const std::function<Ended(Reload&)>& command);

}  // namespace pawl::cli
