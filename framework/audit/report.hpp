#pragma once

#include <string>
#include <vector>

#include "audit/audit.hpp"
#include "audit/findings.hpp"
#include "console/terminal.hpp"
#include "pawl/options.hpp"
#include "postgres/read_only_query.hpp"

namespace pawl::cli {

/// One of [audit]'s queries, and what it answered.
struct CheckedQuery {
  std::string name;
  std::string problem;  ///< why it could not run; empty: it ran
  postgres::QueryAnswer answer;
};

/// The result of an audit.
struct AuditReport {
  bool fast = false;
  bool verbose = false;  ///< show also columns that are 0 in each row
  bool show_rows = false;
  std::vector<engine::AuditedPartition> partitions;
  std::vector<CheckedQuery> queries;
  std::vector<engine::AuditFinding> findings;  ///< the first ones
};

/// "topic[partition]@offset key "K": what is wrong; what to do", without control characters.
std::string line_of(const engine::AuditFinding& finding);

/// Tables of partitions and queries, and the result, for people.
std::string audit_text(const AuditReport& report, const engine::AuditFindings& findings,
                       const Terminal& terminal);
/// The exit code: 0 consistent, 1 incomplete without other findings, 3 findings.
int audit_exit_code(const engine::AuditFindings& findings);
/// The report and its findings as one JSON object, for machines.
std::string audit_json(const Options& options, const AuditReport& report,
                       const engine::AuditFindings& findings);

}  // namespace pawl::cli
