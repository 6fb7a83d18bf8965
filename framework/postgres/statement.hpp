#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>

namespace pawl::postgres {

/// Whether a text of the application's calls pawl.publish, as far as its words tell: what a
/// function or a trigger does within it they do not say.
[[nodiscard]] inline bool calls_publish(std::string_view sql) {
  constexpr std::string_view kCall = ".publish";
  for (auto at = sql.find(kCall); at != std::string_view::npos; at = sql.find(kCall, at + 1)) {
    const auto behind = sql.find_first_not_of(" \t\r\n", at + kCall.size());
    if (behind != std::string_view::npos && sql[behind] == '(')
      return true;
  }
  return false;
}

/// Whether an application's text may by itself change settings that outlive its transaction
/// (PostgreSQL manual, SET). It does not cover functions and triggers;
/// SchemaVersion::may_change_settings() does.
[[nodiscard]] bool text_may_change_settings(std::string_view sql);

/// A statement that is prepared once a session, on first use, under its name. Lives as long as the
/// sessions that use it; names are unique within a session.
struct Statement {
  std::string name;
  std::string text;
  /// It writes to the outbox: whoever publishes is told once that is committed.
  bool publishes = false;
  /// What it must be, for the error that says that it is not (42601); empty: that says enough.
  std::string rule = {};
  /// It compares the settings of its session with Session::state(), which is sent as its last
  /// parameter, behind those of the request.
  bool verifies_session = false;
  /// It is the application's, and so may take advisory locks of the session, which outlive its
  /// transaction.
  bool of_application = false;
  /// text_may_change_settings() of its text, which is the application's.
  bool may_change_settings = false;
  /// The name of the statement whose parameters it has, around which it is written; empty: its own.
  std::string typed_as = {};

  /// The same statement for a connection without a pooler: it relies on the server process. Null:
  /// there is none.
  std::shared_ptr<const Statement> direct = nullptr;
  /// That one for a session whose settings nothing can have changed: it does not compare them.
  std::shared_ptr<const Statement> direct_unverified = nullptr;
  /// The same statement, which releases the advisory locks of the session as well; behind its own
  /// parameters it has those of Session::add_own_lock(). Null: there is none.
  std::shared_ptr<const Statement> releasing = nullptr;

  [[nodiscard]] const std::string& types_name() const { return typed_as.empty() ? name : typed_as; }
};

/// A statement of the application's.
[[nodiscard]] inline Statement application_statement(std::string name, std::string text,
                                                     std::string rule = {}) {
  Statement statement{std::move(name), std::move(text)};
  statement.publishes = calls_publish(statement.text);
  statement.rule = std::move(rule);
  statement.of_application = true;
  statement.may_change_settings = text_may_change_settings(statement.text);
  return statement;
}

}  // namespace pawl::postgres
