#pragma once

#include <stdexcept>
#include <string>
#include <vector>

namespace pawl {

/// A handler throws it if retries cannot help: the failure policy applies at once. After any other
/// exception, pawl first retries the message (`failures.retry_for`, `failures.max_attempts`).
///
///   throw pawl::PermanentError("account " + account + " is closed");
class PermanentError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Invalid options. problems() contains all errors, one line each: place, option, what is wrong,
/// and what to do.
class ConfigErrors : public std::runtime_error {
 public:
  explicit ConfigErrors(std::vector<std::string> problems);
  [[nodiscard]] const std::vector<std::string>& problems() const { return problems_; }

 private:
  std::vector<std::string> problems_;
};

/// The consumer cannot run, for example because the schema is too old, or because of a fatal error
/// of Kafka. what() contains the cause and what to do.
class FatalError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

}  // namespace pawl
