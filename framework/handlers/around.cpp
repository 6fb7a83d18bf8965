#include "handlers/around.hpp"

#include <functional>
#include <span>
#include <utility>

namespace pawl::handlers {
namespace {

using Arounds = std::vector<AroundFunction>;

void call_inside(std::span<const AroundFunction> arounds, const HandlerCall& what,
                 const std::function<void()>& call) {
  if (arounds.empty()) {
    call();
    return;
  }
  const CallEnd end = arounds.front()(what);
  const auto tell = [&end](const std::exception_ptr& failure) {
    if (end)
      end(failure);
  };
  try {
    call_inside(arounds.subspan(1), what, call);
  } catch (...) {
    try {
      tell(std::current_exception());
    } catch (...) {  // NOLINT(bugprone-empty-catch): what the call threw is what counts
    }
    throw;
  }
  tell(nullptr);
}

}  // namespace

HandlerFunction inside(const Arounds& arounds, const std::string& handler,
                       HandlerFunction function) {
  if (arounds.empty())
    return function;
  return [&arounds, handler, function = std::move(function)](pqxx::dbtransaction& tx,
                                                             const Message& message) {
    Response response;
    call_inside(arounds, {handler, {&message, 1}}, [&] { response = function(tx, message); });
    return response;
  };
}

BatchFunction inside(const Arounds& arounds, const std::string& handler, BatchFunction function) {
  if (arounds.empty())
    return function;
  return [&arounds, handler, function = std::move(function)](pqxx::dbtransaction& tx,
                                                             std::span<const Message> messages) {
    std::vector<Response> responses;
    call_inside(arounds, {handler, messages}, [&] { responses = function(tx, messages); });
    return responses;
  };
}

StatementFunction inside(const Arounds& arounds, const std::string& handler,
                         StatementFunction function) {
  if (arounds.empty())
    return function;
  return [&arounds, handler, function = std::move(function)](Statements& statements,
                                                             const Message& message) {
    call_inside(arounds, {handler, {&message, 1}}, [&] { function(statements, message); });
  };
}

pawl::LeasedHandler inside(const Arounds& arounds, const std::string& handler,
                           pawl::LeasedHandler functions) {
  if (arounds.empty())
    return functions;
  functions.call = [&arounds, handler, function = std::move(functions.call)](
                       Lease& lease, const Message& message) {
    Response response;
    call_inside(arounds, {handler, {&message, 1}}, [&] { response = function(lease, message); });
    return response;
  };
  return functions;
}

}  // namespace pawl::handlers
