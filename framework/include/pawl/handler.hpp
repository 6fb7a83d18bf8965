#pragma once

#include <exception>
#include <functional>
#include <map>
#include <optional>
#include <pqxx/dbtransaction>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "pawl/lease.hpp"
#include "pawl/message.hpp"
#include "pawl/response.hpp"
#include "pawl/statements.hpp"

namespace pawl {

/// Applies one message in pawl's transaction. If the function returns, effects, key, and offset
/// commit together. If it throws, all of them roll back.
///
///   app.handler("payment", [](pqxx::dbtransaction& tx, const pawl::Message& message) {
///     tx.exec("INSERT INTO payments (payload) VALUES ($1)", pqxx::params{message.value()});
///   });
///
/// pawl calls it on a worker thread: one call at a time per partition (unless the handler has
/// `concurrency`), and concurrently for partitions of different workers. The handler must not end
/// the transaction (commit(), abort(), COMMIT, or ROLLBACK): pawl detects this, and the message
/// fails. pqxx::subtransaction is allowed.
using HandlerFunction = std::function<Response(pqxx::dbtransaction&, const Message&)>;

/// Applies messages of one partition in one transaction, in the order of the log and without
/// duplicates (docs/batches.md). All effects commit, or none. pawl calls it like HandlerFunction,
/// with at least one message. After a failure, on probation, and in a replay, it passes exactly one
/// message, so many messages must have the same effect as each of them in turn. Returns one
/// response per message, in their order, or none.
using BatchFunction =
    std::function<std::vector<Response>(pqxx::dbtransaction&, std::span<const Message>)>;

/// Plans the statements that apply one message, for handlers that read nothing before they write.
/// The transaction then needs no response before COMMIT, so pawl sends many at once
/// (`consumer.pipeline`). Each message keeps its own transaction, in order. The result must depend
/// only on the message: pawl calls the function before the transaction starts, before it knows
/// whether the message is a duplicate, and again if it retries the message alone. Threads and
/// exceptions are the same as for HandlerFunction.
using StatementFunction = std::function<void(Statements&, const Message&)>;

/// A handler with an effect outside of this database (docs/external-calls.md). One process at a
/// time calls for the idempotency key of a message, and pawl records the outcome once.
struct LeasedHandler {
  /// Makes the call, outside of any transaction, on its own thread: concurrently for different
  /// messages, also of one partition. Its result is the response. NotDone and PermanentError mean
  /// that the call had no effect. After any other exception, the outcome is unknown.
  std::function<Response(Lease&, const Message&)> call;
  /// Optional. Runs in the transaction that records the outcome, with the rules of HandlerFunction.
  /// If it throws, pawl does not repeat the call: the next attempt records the same response.
  std::function<void(pqxx::dbtransaction&, const Message&, const Response&)> record = nullptr;
  /// Optional, for `on_unknown = "reconcile"`. Checks with the remote service whether an earlier
  /// attempt succeeded. pawl calls it like `call`.
  std::function<Found(Lease&, const Message&)> reconcile = nullptr;
};

/// Derives the idempotency key of a message. Nullopt: the message has none
/// (`idempotency.missing_key`).
using KeyFunction = std::function<std::optional<std::string>(const Message&)>;

/// pawl calls it for a message whose key was already processed, with the stored response, after the
/// offset of the duplicate is committed. pawl logs an exception, which has no further effect.
using DuplicateFunction = std::function<void(const Message&, const Response&)>;

/// pawl calls it for every new PostgreSQL connection before its first message, for example to
/// prepare statements.
using ConnectFunction = std::function<void(pqxx::connection&)>;

/// A call of a handler's function. Views of the arguments.
struct HandlerCall {
  std::string_view handler;           ///< the name of the handler
  std::span<const Message> messages;  ///< one; for a batch handler, all messages of the call
};

/// pawl calls it after a call of a handler, with the exception of the handler, or nullptr if it
/// returned. pawl destroys it afterwards.
using CallEnd = std::function<void(const std::exception_ptr&)>;

/// pawl calls it before each call of a handler's C++ function, and the returned CallEnd, if it is
/// not empty, after that call on the same thread in any case. It can neither prevent the call nor
/// suppress an exception. If there are several, the first registered one is the outermost: pawl
/// calls it first, and its CallEnd last. An exception of it, or of its CallEnd after a call that
/// returned, fails the message as if the handler had thrown it. Outer CallEnds receive that
/// exception.
///
/// Retries and replays are calls, duplicates are not. A call of a StatementFunction plans
/// statements, which run later. SQL handlers have no calls. An Observer receives the outcome of
/// transactions.
using AroundFunction = std::function<CallEnd(const HandlerCall&)>;

/// The functions that a program registers, by the name of the handler. A later function replaces an
/// earlier one with the same name. Fill it before the consumer starts. It is read-only afterwards.
class Registry {
 public:
  template <typename F>
  void handler(std::string name, F function) {
    forget(name);
    if constexpr (std::is_void_v<std::invoke_result_t<F&, pqxx::dbtransaction&, const Message&>>) {
      handlers_[std::move(name)] = [f = std::move(function)](pqxx::dbtransaction& tx,
                                                             const Message& message) mutable {
        f(tx, message);
        return Response{};
      };
    } else {
      handlers_[std::move(name)] = std::move(function);
    }
  }
  template <typename F>
  void batch_handler(std::string name, F function) {
    forget(name);
    if constexpr (std::is_void_v<
                      std::invoke_result_t<F&, pqxx::dbtransaction&, std::span<const Message>>>) {
      batch_handlers_[std::move(name)] = [f = std::move(function)](
                                             pqxx::dbtransaction& tx,
                                             std::span<const Message> messages) mutable {
        f(tx, messages);
        return std::vector<Response>{};
      };
    } else {
      batch_handlers_[std::move(name)] = std::move(function);
    }
  }
  void statement_handler(std::string name, StatementFunction function) {
    forget(name);
    statement_handlers_[std::move(name)] = std::move(function);
  }
  void leased_handler(std::string name, LeasedHandler handler) {
    forget(name);
    leased_handlers_[std::move(name)] = std::move(handler);
  }
  void key(std::string name, KeyFunction function) { keys_[std::move(name)] = std::move(function); }
  void on_duplicate(std::string name, DuplicateFunction function) {
    duplicates_[std::move(name)] = std::move(function);
  }
  void on_connect(ConnectFunction function) { connects_.push_back(std::move(function)); }
  void around(AroundFunction function) { arounds_.push_back(std::move(function)); }

  [[nodiscard]] const HandlerFunction* find_handler(std::string_view name) const {
    return find(handlers_, name);
  }
  [[nodiscard]] const BatchFunction* find_batch_handler(std::string_view name) const {
    return find(batch_handlers_, name);
  }
  [[nodiscard]] const StatementFunction* find_statement_handler(std::string_view name) const {
    return find(statement_handlers_, name);
  }
  [[nodiscard]] const LeasedHandler* find_leased_handler(std::string_view name) const {
    return find(leased_handlers_, name);
  }
  [[nodiscard]] const KeyFunction* find_key(std::string_view name) const {
    return find(keys_, name);
  }
  [[nodiscard]] const DuplicateFunction* find_on_duplicate(std::string_view name) const {
    return find(duplicates_, name);
  }
  [[nodiscard]] const std::vector<ConnectFunction>& connect_functions() const { return connects_; }
  [[nodiscard]] const std::vector<AroundFunction>& around_functions() const { return arounds_; }
  /// The names of all handlers, of every kind.
  [[nodiscard]] std::vector<std::string> handler_names() const;

 private:
  template <typename T>
  using Map = std::map<std::string, T, std::less<>>;

  template <typename T>
  static const T* find(const Map<T>& map, std::string_view name) {
    const auto it = map.find(name);
    return it == map.end() ? nullptr : &it->second;
  }

  void forget(const std::string& name) {
    handlers_.erase(name);
    batch_handlers_.erase(name);
    statement_handlers_.erase(name);
    leased_handlers_.erase(name);
  }

  Map<HandlerFunction> handlers_;
  Map<BatchFunction> batch_handlers_;
  Map<StatementFunction> statement_handlers_;
  Map<LeasedHandler> leased_handlers_;
  Map<KeyFunction> keys_;
  Map<DuplicateFunction> duplicates_;
  std::vector<ConnectFunction> connects_;
  std::vector<AroundFunction> arounds_;
};

}  // namespace pawl
