#pragma once

#include <string>
#include <utility>

#include "pawl/handler.hpp"

namespace pawl {

/// A program with the commands of pawl and its own handlers: command line, configuration file,
/// signals, and logs. Register handlers by name, then return main().
///
///   pawl::App app{"payments"};
///   app.handler("payment", [](pqxx::dbtransaction& tx, const pawl::Message& message) {
///     tx.exec("INSERT INTO payments (payload) VALUES ($1)", pqxx::params{message.value()});
///   });
///   return app.main(argc, argv);  // payments run | check | status ... --config FILE
class App {
 public:
  explicit App(std::string name);

  /// Registers a handler, to which the configuration assigns topics (`[[handler]] name =
  /// "payment"`). pawl calls `function` like HandlerFunction. It may return nothing, a std::string,
  /// or a pawl::Response.
  template <typename F>
  App& handler(std::string name, F function) {
    registry_.handler(std::move(name), std::move(function));
    return *this;
  }
  /// Registers a handler that applies many messages in one transaction (docs/batches.md). pawl
  /// calls `function` like BatchFunction. It may return nothing.
  template <typename F>
  App& batch_handler(std::string name, F function) {
    registry_.batch_handler(std::move(name), std::move(function));
    return *this;
  }
  /// Registers a handler that plans the statements of a message and reads nothing. pawl sends many
  /// messages to PostgreSQL before it waits for a response, each in its own transaction.
  App& statement_handler(std::string name, StatementFunction function) {
    registry_.statement_handler(std::move(name), std::move(function));
    return *this;
  }
  /// Registers a handler with an effect outside of this database: an external call under a lease of
  /// the message's idempotency key (docs/external-calls.md).
  App& leased_handler(std::string name, LeasedHandler handler) {
    registry_.leased_handler(std::move(name), std::move(handler));
    return *this;
  }
  /// Registers a function that replaces the key template for the handler of this name.
  App& key(std::string name, KeyFunction function) {
    registry_.key(std::move(name), std::move(function));
    return *this;
  }
  /// Registers a function that pawl calls for each duplicate of the handler of this name.
  App& on_duplicate(std::string name, DuplicateFunction function) {
    registry_.on_duplicate(std::move(name), std::move(function));
    return *this;
  }
  /// Registers a function that pawl calls for each new connection to PostgreSQL.
  App& on_connect(ConnectFunction function) {
    registry_.on_connect(std::move(function));
    return *this;
  }
  /// Registers a function around each call of every C++ handler, for tracing or logging context.
  App& around(AroundFunction function) {
    registry_.around(std::move(function));
    return *this;
  }

  /// Parses the command line and runs the command. Returns the exit code of the process
  /// (docs/reference/commands.md). Reports errors on stderr, and throws nothing.
  int main(int argc, char** argv);

 private:
  std::string name_;
  Registry registry_;
};

}  // namespace pawl
