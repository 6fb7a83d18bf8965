#pragma once

#include <string>
#include <vector>

namespace pawl::cli {

/// Rights as ledger::missing_rights() lists them, for a person: by privilege, of each the first few
/// names. "INSERT on pawl.consumers, pawl.suspects; EXECUTE on function pawl.a and 12 more".
[[nodiscard]] std::string rights_text(std::vector<std::string> rights);

/// A database, and who may grant rights there.
struct GrantingRole {
  std::string host;
  std::string port;
  std::string database;
  std::string owner;  ///< of pawl's schema; empty: not known
};

/// The command of `program` that gives a role its rights; `relay`: those of `pawl relay` alone.
[[nodiscard]] std::string grants_command(const std::string& program, const std::string& role,
                                         const std::string& schema, bool relay,
                                         const GrantingRole& by);

}  // namespace pawl::cli
