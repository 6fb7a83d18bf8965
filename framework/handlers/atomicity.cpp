#include "handlers/atomicity.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "handlers/handler_statement.hpp"
#include "handlers/written_names.hpp"
#include "pawl/errors.hpp"
#include "postgres/describe.hpp"
#include "postgres/remote_tables.hpp"

namespace pawl::handlers {
namespace {

constexpr const char* kExec = "dblink_exec";

std::string refusal(const DescribedStatement& statement, const std::string& what,
                    const std::string& accepted) {
  return fmt::format(
      "{}: {}. That server commits separately, so a crash can apply a message there twice. Use one "
      "database per consumer, the outbox, or an http handler "
      "(docs/guarantees.md#effects-on-another-server). To accept this, set in the handler: "
      "not_atomic = [\"{}\"]",
      statement.place(), what, accepted);
}

/// Of one handler.
class Look {
 public:
  Look(Atomicity& found, const std::vector<std::string>& accepted)
      : found_(found), accepted_(accepted) {}

  void at(postgres::Session& session, const DescribedStatement& statement) {
    for (const auto& call : dblink_calls(statement.sql)) {
      if (call != kExec) {
        found_.warnings.push_back(
            fmt::format("{}: calls {}, which may write on another server. That server commits "
                        "separately, so a crash can apply a message there twice. Check that the "
                        "statement only reads",
                        statement.place(), call));
      } else if (!accepts(kExec)) {
        found_.problems.push_back(refusal(
            statement, "calls dblink_exec, which runs a statement on another server", kExec));
      }
    }
    const auto tables = postgres::written_remote_tables(
        session, statement.sql, statement.parameters, written_names(statement.sql));
    for (const auto& [name, why] : tables) {
      if (!accepts(name)) {
        found_.problems.push_back(
            refusal(statement, fmt::format("writes to {}, which {}", name, why), name));
      }
    }
  }

  /// Entries that accept nothing.
  void unused(const std::string& handler) {
    for (const auto& entry : accepted_) {
      if (!used_.contains(entry)) {
        found_.warnings.push_back(
            fmt::format("{}: not_atomic has \"{}\", but no statement of this handler writes to a "
                        "table of this name on another server. Correct or remove the entry",
                        handler_text(handler), entry));
      }
    }
  }

 private:
  bool accepts(const std::string& name) {
    if (std::ranges::find(accepted_, name) == accepted_.end())
      return false;
    used_.insert(name);
    return true;
  }

  Atomicity& found_;
  const std::vector<std::string>& accepted_;
  std::set<std::string> used_;
};

}  // namespace

Atomicity check_atomicity(postgres::Session& session, const Router& router,
                          const std::vector<HandlerOptions>& handlers) {
  Atomicity found;
  if (postgres::some_table_is_locked(session)) {
    found.warnings.emplace_back(
        "a table of the database is locked exclusively. pawl therefore checked only the table "
        "names in the handlers' SQL for tables of other servers. Check again when the lock is "
        "released");
  }
  for (std::size_t i = 0; i < handlers.size() && i < router.bindings().size(); ++i) {
    const auto& binding = *router.bindings()[i];
    Look look(found, handlers[i].not_atomic);
    for (const auto& statement : binding.handler->statements())
      look.at(session, statement);
    look.unused(binding.label);
  }
  return found;
}

void require_atomicity(postgres::Session& session, const Router& router,
                       const std::vector<HandlerOptions>& handlers) {
  const auto found = check_atomicity(session, router, handlers);
  if (!found.problems.empty())
    throw FatalError(fmt::format("{}", fmt::join(found.problems, "\n")));
}

}  // namespace pawl::handlers
