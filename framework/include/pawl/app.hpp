#pragma once

#include <string>
#include <utility>

#include "pawl/handler.hpp"

namespace pawl {

/// A program around the engine: command line, configuration file, signals, logs.
/// Register handlers by name, then return main(): `NAME run --config FILE`, `NAME check`, ...
class App {
 public:
  explicit App(std::string name);

  /// A handler the configuration binds to topics (`[[handler]] name = "payment"`). `function` is
  /// called as HandlerFunction and may return nothing, a std::string or a pawl::Response.
  template <typename F>
  App& handler(std::string name, F function) {
    registry_.handler(std::move(name), std::move(function));
    return *this;
  }
  /// The same for a handler that takes many messages in one transaction (docs/batches.md).
  /// `function` is called as BatchFunction and may return nothing.
  template <typename F>
  App& batch_handler(std::string name, F function) {
    registry_.batch_handler(std::move(name), std::move(function));
    return *this;
  }
  /// The same for a handler that says by which statements a message is applied, and reads nothing:
  /// many messages travel to PostgreSQL at once, each still a transaction of its own.
  App& statement_handler(std::string name, StatementFunction function) {
    registry_.statement_handler(std::move(name), std::move(function));
    return *this;
  }
  /// The same for a handler whose effect is outside of this database: a call under a lease of the
  /// message's idempotency key (docs/external-calls.md).
  App& leased_handler(std::string name, LeasedHandler handler) {
    registry_.leased_handler(std::move(name), std::move(handler));
    return *this;
  }
  /// Replaces the key template for that handler.
  App& key(std::string name, KeyFunction function) {
    registry_.key(std::move(name), std::move(function));
    return *this;
  }
  App& on_duplicate(std::string name, DuplicateFunction function) {
    registry_.on_duplicate(std::move(name), std::move(function));
    return *this;
  }
  App& on_connect(ConnectFunction function) {
    registry_.on_connect(std::move(function));
    return *this;
  }
  /// Around each call of every handler in C++: tracing, logging context.
  App& around(AroundFunction function) {
    registry_.around(std::move(function));
    return *this;
  }

  /// Parses the command line and runs the command. Returns the process exit code
  /// (docs/runbook.md lists them); reports errors on stderr and throws nothing.
  int main(int argc, char** argv);

 private:
  std::string name_;
  Registry registry_;
};

}  // namespace pawl
