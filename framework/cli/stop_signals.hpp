#pragma once

#include <functional>
#include <thread>

namespace pawl::cli {

/// Turns SIGTERM and SIGINT into one call of `stop`; a second one ends the process at once, with
/// 128 + its number. That is safe: whatever was not committed runs again (docs/guarantees.md).
/// SIGHUP is a call of `reload`, until one of them has ended the run.
///
/// The signals are served on a thread of its own, where both may take locks. Owned by `run`.
class StopSignals {
 public:
  /// Call before any other thread starts: they inherit that the signals are blocked, which then
  /// wait for an object of this class.
  enum class Reload { kNo, kYes };
  static void block(Reload reload = Reload::kNo);

  /// `reload` says whether it ends the run; null: SIGHUP does what it does to any program.
  explicit StopSignals(std::function<void(int signal)> stop,
                       std::function<bool()> reload = nullptr);
  ~StopSignals();
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;

 private:
  void serve();

  std::function<void(int)> stop_;
  std::function<bool()> reload_;
  int signals_ = -1;  // signalfd
  int end_ = -1;      // eventfd
  std::thread thread_;
};

}  // namespace pawl::cli
