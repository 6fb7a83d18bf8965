#pragma once

// A consumer with a handler in C++ and all commands of pawl: `payments run`, `payments status`, ...
//
//   #include <pawl/app.hpp>
//   #include <pqxx/pqxx>
//
//   int main(int argc, char** argv) {
//     pawl::App app("payments");
//     app.handler("payment", [](pqxx::dbtransaction& tx, const pawl::Message& message) {
//       tx.exec("INSERT INTO payments (event_id, payment) VALUES ($1, $2::jsonb)",
//               pqxx::params{message.header("event-id"), message.value()});
//     });
//     return app.main(argc, argv);
//   }

#include <string>
#include <utility>

#include "pawl/handler.hpp"

namespace pawl {

/// A complete program: command line, configuration file, signals, and logs. Register handlers by
/// name, then return main(). Use it from one thread.
class App {
 public:
  /// `name`: of the program, in its help and in the commands that its texts contain.
  explicit App(std::string name);

  /// Registers a handler, which the configuration binds to topics (`[[handler]] name = "payment"`).
  /// `function` is called as a HandlerFunction. It returns nothing, a std::string, or a Response.
  template <typename F>
  App& handler(std::string name, F function) {
    registry_.handler(std::move(name), std::move(function));
    return *this;
  }
  /// Registers a handler that applies many messages in one transaction (docs/batches.md).
  /// `function` is called as a BatchFunction. It returns nothing or a std::vector<Response>.
  template <typename F>
  App& batch_handler(std::string name, F function) {
    registry_.batch_handler(std::move(name), std::move(function));
    return *this;
  }
  /// Registers a handler that lists the statements of a message and reads nothing. pawl sends many
  /// such messages in one round trip, each in a transaction of its own.
  App& statement_handler(std::string name, StatementFunction function) {
    registry_.statement_handler(std::move(name), std::move(function));
    return *this;
  }
  /// Registers a handler that calls a remote service, under a lease of the message's idempotency
  /// key (docs/external-calls.md).
  App& leased_handler(std::string name, LeasedHandler handler) {
    registry_.leased_handler(std::move(name), std::move(handler));
    return *this;
  }
  /// Registers the function that derives the idempotency key for this handler, instead of the
  /// option `key`.
  App& key(std::string name, KeyFunction function) {
    registry_.key(std::move(name), std::move(function));
    return *this;
  }
  /// Registers a function that is called for each duplicate of this handler.
  App& on_duplicate(std::string name, DuplicateFunction function) {
    registry_.on_duplicate(std::move(name), std::move(function));
    return *this;
  }
  /// Registers a function that is called for each new connection to PostgreSQL.
  App& on_connect(ConnectFunction function) {
    registry_.on_connect(std::move(function));
    return *this;
  }
  /// Registers a function that is called before each call of a C++ handler, for tracing or logging.
  App& around(AroundFunction function) {
    registry_.around(std::move(function));
    return *this;
  }

  /// Parses the command line and runs the command. Returns the exit code of the process
  /// (docs/reference/commands.md). Prints errors on stderr, and throws nothing.
  int main(int argc, char** argv);

 private:
  std::string name_;
  Registry registry_;
};

}  // namespace pawl
