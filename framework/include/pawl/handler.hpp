#pragma once

// Two handlers: "payment" reads a balance, which pawl stores as the response; "bonus" reads
// nothing.
//
//   #include <pawl/handler.hpp>
//   #include <pqxx/pqxx>
//
//   pawl::Registry handlers() {
//     pawl::Registry registry;
//     registry.handler("payment", [](pqxx::dbtransaction& tx, const pawl::Message& message) {
//       return tx
//           .exec("UPDATE accounts SET balance = balance + ($1::jsonb->>'amount')::bigint"
//                 " WHERE id = $1::jsonb->>'account' RETURNING balance",
//                 pqxx::params{message.value()})
//           .one_field()
//           .as<std::string>();
//     });
//     registry.statement_handler(
//         "bonus", [](pawl::Statements& statements, const pawl::Message& message) {
//           statements.add("INSERT INTO bonuses (bonus) VALUES ($1::jsonb)",
//                          pqxx::params{message.value()});
//         });
//     return registry;
//   }

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

/// Applies one message in pawl's transaction. If it returns, its effects, the idempotency key, and
/// the offset commit together. If it throws, all of them are rolled back.
///
/// pawl calls it on a worker thread: one call at a time per partition, concurrently for different
/// partitions, and with `concurrency` also for one partition. It must be thread-safe.
///
/// It must not end the transaction: commit(), abort(), and the statements COMMIT and ROLLBACK fail
/// the message. pqxx::subtransaction is allowed.
using HandlerFunction = std::function<Response(pqxx::dbtransaction&, const Message&)>;

/// Applies messages of one partition in one transaction, which commits or rolls back as a whole
/// (docs/batches.md). The messages are in the order of the log, without duplicates, at least one.
///
/// pawl calls it as a HandlerFunction. After a failure, on probation, and in a replay, it receives
/// one message at a time. So the result for many messages must be that of one message after the
/// other.
///
/// It returns one response per message, in their order, or an empty vector. Any other number fails
/// the messages.
using BatchFunction =
    std::function<std::vector<Response>(pqxx::dbtransaction&, std::span<const Message>)>;

/// Lists the statements of one message, for handlers that read nothing. pawl sends up to
/// `consumer.pipeline` messages in one round trip, each in a transaction of its own, in order.
///
/// It must depend on the message only. pawl calls it before BEGIN of the message's transaction,
/// also for duplicates, and again if the message is processed alone. It runs on the same threads as
/// a HandlerFunction. If it throws, the message fails.
using StatementFunction = std::function<void(Statements&, const Message&)>;

/// A handler that calls a remote service (docs/external-calls.md). One process at a time calls for
/// an idempotency key, and pawl records the outcome once.
struct LeasedHandler {
  /// Makes the call outside of any transaction, on a thread of its own, concurrently for different
  /// messages. Returns the response. NotDone and PermanentError mean that nothing was done. After
  /// any other exception, the outcome is unknown.
  std::function<Response(Lease&, const Message&)> call;
  /// Optional. Runs in the transaction that records the outcome, under the rules of
  /// HandlerFunction. If it throws, the call is not repeated: the next attempt records the same
  /// response.
  std::function<void(pqxx::dbtransaction&, const Message&, const Response&)> record = nullptr;
  /// Required for `on_unknown = "reconcile"`. Checks with the remote service whether an earlier
  /// attempt has succeeded. pawl calls it as `call`.
  std::function<Found(Lease&, const Message&)> reconcile = nullptr;
};

/// Derives the idempotency key. Nullopt or an empty text: the message has no key, and
/// `idempotency.missing_key` applies. If it throws, the message fails.
using KeyFunction = std::function<std::optional<std::string>(const Message&)>;

/// Receives a message whose key was already processed, with the response that was stored then. It
/// runs after the offset of the duplicate has committed. If it throws, pawl logs `callback_failed`,
/// and the duplicate stays skipped.
using DuplicateFunction = std::function<void(const Message&, const Response&)>;

/// Runs on each new connection to PostgreSQL before its first message, for example to prepare
/// statements. docs/cpp.md lists the settings that it may change.
using ConnectFunction = std::function<void(pqxx::connection&)>;

/// The call of a handler's function. Views, which are valid until the call has ended.
struct HandlerCall {
  std::string_view handler;           ///< its name
  std::span<const Message> messages;  ///< one; for a batch handler, all messages of the batch
};

/// Receives the exception of a call, or nullptr if the call returned. pawl destroys it afterwards.
using CallEnd = std::function<void(const std::exception_ptr&)>;

/// Runs before each call of a handler's C++ function. It may return a CallEnd, which runs after the
/// call on the same thread, whatever the call did. Neither can prevent the call or hide its
/// exception.
///
/// Of several functions, the one that was registered first is the outermost: it runs first, and its
/// CallEnd runs last. If an AroundFunction throws, or a CallEnd after a call that returned, the
/// message fails as if the handler had thrown. The outer CallEnds receive that exception.
///
/// A retry and a replay are calls; a duplicate is not. The call of a StatementFunction returns
/// before its statements run. SQL handlers have no call. An Observer receives the outcome of the
/// message.
using AroundFunction = std::function<CallEnd(const HandlerCall&)>;

/// The functions of a program, by the name of their handler. If a name is registered twice, the
/// later function replaces the earlier one. Fill it before the consumer starts. App has the same
/// functions, with comments.
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

  /// The function with this name; nullptr: no such function is registered.
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
  /// The names of all handlers, of all kinds.
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
