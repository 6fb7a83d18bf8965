#pragma once

#include <stdexcept>
#include <string>
#include <vector>

namespace pawl {

/// Thrown by a handler for a message that no retry can help: the failure policy applies at once.
/// Any other exception is retried up to `failures.max_attempts` times first.
class PermanentError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Invalid options. Holds everything that is wrong, each with its place and what to do.
class ConfigErrors : public std::runtime_error {
 public:
  explicit ConfigErrors(std::vector<std::string> problems);
  [[nodiscard]] const std::vector<std::string>& problems() const { return problems_; }

 private:
  std::vector<std::string> problems_;
};

/// The consumer as a whole cannot run: wrong cluster, schema too old, fatal Kafka error.
/// what() says why and what to do.
class FatalError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

}  // namespace pawl
