#pragma once

#include <chrono>
#include <optional>

namespace pawl::engine {

/// Measures only where somebody wants to know: to read the clock costs some tens of nanoseconds.
class Stopwatch {
 public:
  using Clock = std::chrono::steady_clock;
  using Duration = std::optional<Clock::duration>;

  explicit Stopwatch(bool wanted) {
    if (wanted)
      begun_ = Clock::now();
  }

  void stop() {
    if (begun_)
      stopped_ = Clock::now();
  }

  // Both until stop(); nullopt: it is not wanted.
  [[nodiscard]] Duration read() const {
    return begun_ ? Duration(stopped_ - *begun_) : std::nullopt;
  }
  /// Nullopt also where `then` was never noted.
  [[nodiscard]] Duration since(Clock::time_point then) const {
    return begun_ && then != Clock::time_point{} ? Duration(stopped_ - then) : std::nullopt;
  }

 private:
  std::optional<Clock::time_point> begun_;
  Clock::time_point stopped_{};
};

}  // namespace pawl::engine
