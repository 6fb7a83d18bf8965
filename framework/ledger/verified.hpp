#pragma once

#include <string>
#include <string_view>

#include "postgres/statement.hpp"

namespace pawl::ledger {

/// SQL that compares what a process remembers with what is so, in the statement that relies on it.
/// A pooler keeps a connection over a failover and a restore, so that a connection which works
/// proves nothing. Parameters are given by their numbers.

/// An expression of SQL.
struct VerifiedValue {
  std::string compared;  ///< it compares what it is made of with the database
  std::string direct;    ///< for a connection without a pooler, which ends with its database
};

/// The number of a scope of idempotency keys. Raises PW017 unless parameter `number` is the number
/// of the scope that is called parameter `name` in this database.
VerifiedValue verified_scope(int number, int name, const std::string& schema);

/// A statement with that expression in place of {scope} in `text`.
postgres::Statement with_scope(std::string name, std::string_view text, int number, int scope_name,
                               const std::string& schema);

/// A statement that raises PW018 if the session's settings differ from their baseline, its last
/// parameter (postgres::Session::state()). Its form for a session whose settings nothing can have
/// changed does not compare them. `value` replaces `place` in `text`.
postgres::Statement verifying(std::string name, std::string_view text, std::string_view place,
                              const VerifiedValue& value, const std::string& schema);

}  // namespace pawl::ledger
