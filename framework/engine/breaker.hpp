#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>

namespace pawl::engine {

/// Counts, for each handler of this process, the messages in a row that failed in the same way and
/// were set aside. A row of them says that not the messages are wrong. Any thread.
class Breaker {
 public:
  /// Whether one more message that failed in this way may be set aside. `most`: 0 is no bound.
  [[nodiscard]] bool allows(const std::string& handler, const std::string& way,
                            std::uint32_t most) const;
  /// A message was set aside.
  void count(const std::string& handler, const std::string& way);
  /// A message was applied: the row ends.
  void applied(const std::string& handler);

 private:
  struct Row {
    std::string way;
    std::uint32_t length = 0;
  };

  /// Spares the lock while nothing fails.
  std::atomic<bool> counting_{false};
  mutable std::mutex mutex_;
  std::map<std::string, Row> rows_;  // guarded by mutex_
};

}  // namespace pawl::engine
