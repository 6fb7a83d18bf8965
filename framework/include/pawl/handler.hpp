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

/// Applies one message inside pawl's transaction. Returning commits effects, key and offset
/// together; throwing rolls all of them back. Called on a worker thread, at most once at a time per
/// partition, concurrently for partitions of different workers. The handler must not end the
/// transaction (commit(), abort(), raw COMMIT or ROLLBACK): that is detected and fails the message.
/// pqxx::subtransaction is fine.
using HandlerFunction = std::function<Response(pqxx::dbtransaction&, const Message&)>;

/// Applies messages of one partition, in the log's order and without duplicates, in one
/// transaction: all of it commits, or none of it. Called as HandlerFunction is, with at least one
/// message; with exactly one when messages must be told apart: after a failure, on probation, in a
/// replay (docs/batches.md). So what it does with many must be what it does with each of them in
/// turn. Returns a response for each message, in their order, or none at all.
using BatchFunction =
    std::function<std::vector<Response>(pqxx::dbtransaction&, std::span<const Message>)>;

/// Says by which statements one message is applied, for handlers that read nothing before they
/// write. So its transaction needs no answer before COMMIT, and many travel to the server at once
/// (`consumer.pipeline`), each message still in a transaction of its own and in order. Must depend
/// on the message alone: it is called before the message's transaction begins, before it is known
/// whether the message is a duplicate, and again when the message is tried alone. Throwing fails
/// the message, as in HandlerFunction; threads are the same too.
using StatementFunction = std::function<void(Statements&, const Message&)>;

/// A handler whose effect is outside of this database (docs/external-calls.md): one process at a
/// time calls for a message's idempotency key, and the outcome is recorded once.
struct LeasedHandler {
  /// Makes the call, outside of any transaction, on a thread of its own: concurrently for different
  /// messages, also of one partition. What it returns is the response. Throwing NotDone or
  /// PermanentError says that nothing was done; anything else, that nobody knows.
  std::function<Response(Lease&, const Message&)> call;
  /// Optional: runs in the transaction that records the outcome, under the rules of
  /// HandlerFunction. When it throws, the call is not repeated: the next attempt records the same
  /// response.
  std::function<void(pqxx::dbtransaction&, const Message&, const Response&)> record = nullptr;
  /// Optional, for `on_unknown = "reconcile"`: asks the other side about an earlier attempt that is
  /// unknown. Called as `call` is.
  std::function<Found(Lease&, const Message&)> reconcile = nullptr;
};

/// Derives the idempotency key; nullopt: the message has none (`idempotency.missing_key`).
using KeyFunction = std::function<std::optional<std::string>(const Message&)>;

/// Told about a message whose key was already processed, with the response stored then. Runs after
/// the offset of the duplicate is committed; an exception from it is logged and changes nothing.
using DuplicateFunction = std::function<void(const Message&, const Response&)>;

/// Runs on every new PostgreSQL connection before its first message, e.g. to prepare statements.
using ConnectFunction = std::function<void(pqxx::connection&)>;

/// A handler's function that is about to be called; views what the call gets.
struct HandlerCall {
  std::string_view handler;           ///< its name
  std::span<const Message> messages;  ///< one; of a batch handler all that it gets
};

/// Told how a call ended: nullptr when it returned, else what it threw. Destroyed right after.
using CallEnd = std::function<void(const std::exception_ptr&)>;

/// Called before each call of a handler's C++ function; what it returns, if not empty, is called
/// behind it, on the same thread, whatever happened. So it can neither leave the handler out nor
/// keep its exception back. Of several the first one registered is the outermost: begun first, told
/// last. What it throws itself, or its CallEnd after a call that returned, fails the message as if
/// the handler had thrown it, and is told to those around it.
///
/// It is about the function, not about the message: a retry and a replay are calls, a duplicate is
/// none; of a StatementFunction a call says the statements, which run later. SQL handlers have no
/// call. What became of a message's transaction is told to an Observer.
using AroundFunction = std::function<CallEnd(const HandlerCall&)>;

/// The functions that a program gives to pawl, by handler name; of two under one name the later one
/// counts. Filled before the consumer starts, read-only afterwards.
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
  /// Of all kinds.
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
