#pragma once

// A handler that rejects a message, because no retry can help.
//
//   #include <pawl/errors.hpp>
//   #include <pawl/message.hpp>
//   #include <pqxx/pqxx>
//
//   void apply_payment(pqxx::dbtransaction& tx, const pawl::Message& message) {
//     if (!message.has_value())
//       throw pawl::PermanentError("a payment cannot be a tombstone");
//     tx.exec("INSERT INTO payments (payment) VALUES ($1::jsonb)", pqxx::params{message.value()});
//   }

#include <stdexcept>
#include <string>
#include <vector>

namespace pawl {

/// A handler throws it for a message that no retry can help: the failure policy applies at once.
/// After any other exception, the message is retried, as docs/failures.md describes.
class PermanentError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Invalid options. load_config() and the constructor of Consumer throw it.
class ConfigErrors : public std::runtime_error {
 public:
  explicit ConfigErrors(std::vector<std::string> problems);
  /// All problems, at least one: each is one text with the option or its location, and the fix.
  [[nodiscard]] const std::vector<std::string>& problems() const { return problems_; }

 private:
  std::vector<std::string> problems_;
};

/// The consumer cannot run, for example because of another Kafka cluster, an old schema, or a fatal
/// error of Kafka. Consumer::run() throws it. what() contains the cause and the fix.
class FatalError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

}  // namespace pawl
