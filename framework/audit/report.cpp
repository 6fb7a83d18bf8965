#include "audit/report.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "console/commands.hpp"
#include "console/json.hpp"
#include "console/printable.hpp"
#include "console/table.hpp"

namespace pawl::cli {
namespace {

using engine::AuditedPartition;

constexpr std::size_t kShownColumns = 8;

Table::Column right(const char* heading) {
  return {heading, Table::Align::kRight};
}

/// "-": none, the log's beginning.
std::string offset_text(std::int64_t offset) {
  return offset < 0 ? "-" : std::to_string(offset);
}

std::string partitions_read(const AuditReport& report, const engine::AuditFindings& findings) {
  Table table({{"TOPIC"},
               right("PARTITION"),
               right("FROM"),
               right("TO"),
               right("READ"),
               right("APPLIED"),
               right("DUPLICATES"),
               right("DEAD"),
               right("PARKED"),
               right("SKIPPED"),
               right("UNCHECKED"),
               right("TOO OLD"),
               right("FINDINGS")});
  for (const auto& partition : report.partitions) {
    const auto& tally = partition.tally;
    const auto& range = partition.range;
    const bool some = range.after < range.upto;
    table.add({range.partition.topic, std::to_string(range.partition.partition),
               some ? std::to_string(range.after + 1) : "-",
               some ? std::to_string(range.upto) : "-", std::to_string(tally.records),
               std::to_string(tally.applied), std::to_string(tally.duplicates),
               std::to_string(tally.dead), std::to_string(tally.parked),
               std::to_string(tally.skipped), std::to_string(tally.unchecked),
               std::to_string(tally.too_old), std::to_string(findings.of(range.partition))});
  }
  return table.text();
}

std::string partitions_compared(const AuditReport& report, const engine::AuditFindings& findings) {
  Table table({{"TOPIC"},
               right("PARTITION"),
               right("LOG START"),
               right("LOG END"),
               right("BASE"),
               right("STORED"),
               right("COUNTED"),
               right("NOT COUNTED"),
               right("FINDINGS")});
  for (const auto& partition : report.partitions) {
    const auto& row = partition.row;
    table.add({row.partition.topic, std::to_string(row.partition.partition),
               std::to_string(partition.log.start), std::to_string(partition.log.end),
               offset_text(row.base), offset_text(row.stored), std::to_string(row.counted()),
               std::to_string(row.stored - row.base - row.counted()),
               std::to_string(findings.of(row.partition))});
  }
  return table.text();
}

std::string rows_of(const postgres::QueryAnswer& answer) {
  std::string text;
  for (const auto& row : answer.rows) {
    std::vector<std::string> values;
    for (std::size_t i = 0; i < row.size() && i < kShownColumns; ++i) {
      values.push_back(
          fmt::format("{} = {}", answer.columns[i], row[i] ? printable(*row[i]) : "NULL"));
    }
    text += fmt::format("  {}\n", fmt::join(values, ", "));
  }
  if (answer.count > static_cast<std::int64_t>(answer.rows.size()))
    text += "  ...\n";
  return text;
}

std::string queries_text(const AuditReport& report) {
  std::string text;
  for (const auto& query : report.queries) {
    if (!query.problem.empty()) {
      text += fmt::format("check {}: could not run\n", query.name);
    } else if (query.answer.count == 0) {
      text += fmt::format("check {}: ok\n", query.name);
    } else {
      text += fmt::format("check {}: {} rows ({})\n", query.name, query.answer.count,
                          fmt::join(query.answer.columns, ", "));
      if (report.show_rows)
        text += rows_of(query.answer);
    }
  }
  return text;
}

Json json_of(const AuditReport& report, const AuditedPartition& partition,
             const engine::AuditFindings& findings) {
  const auto& row = partition.row;
  Json entry;
  entry["topic"] = row.partition.topic;
  entry["partition"] = row.partition.partition;
  entry["offset"] = row.stored + 1;
  entry["counted_from_offset"] = row.base + 1;
  entry["log_start"] = partition.log.start;
  entry["log_end"] = partition.log.end;
  entry["counted"] = row.counted();
  if (!report.fast) {
    const auto& tally = partition.tally;
    entry["from_offset"] = partition.range.after + 1;
    entry["end_offset"] = partition.range.upto + 1;
    entry["records"] = tally.records;
    entry["applied"] = tally.applied;
    entry["duplicates"] = tally.duplicates;
    entry["dead_letters"] = tally.dead;
    entry["parked"] = tally.parked;
    entry["skipped"] = tally.skipped;
    entry["unchecked"] = tally.unchecked;
    entry["too_old"] = tally.too_old;
  }
  entry["findings"] = findings.of(row.partition);
  return entry;
}

Json json_of(const engine::AuditFinding& finding) {
  Json entry;
  entry["kind"] = finding.kind;
  entry["topic"] = finding.where ? Json(finding.where->topic) : Json(nullptr);
  entry["partition"] = finding.where ? Json(finding.where->partition) : Json(nullptr);
  entry["offset"] = or_null(finding.offset);
  entry["key"] = or_null(finding.key);
  entry["text"] = finding.text;
  entry["action"] = finding.remedy;
  return entry;
}

Json json_of(const AuditReport& report, const CheckedQuery& query) {
  Json entry;
  entry["name"] = query.name;
  entry["problem"] = or_null(query.problem);
  entry["rows"] = query.answer.count;
  entry["columns"] = query.answer.columns;
  if (report.show_rows) {
    auto& shown = entry["shown"] = Json::array();
    for (const auto& row : query.answer.rows) {
      auto& values = shown.emplace_back(Json::array());
      for (const auto& value : row)
        values.push_back(or_null(value));
    }
  }
  return entry;
}

}  // namespace

std::string line_of(const engine::AuditFinding& finding) {
  std::string line;
  if (finding.where)
    line += fmt::format("{} [{}] ", finding.where->topic, finding.where->partition);
  if (finding.offset)
    line += fmt::format("offset {} ", *finding.offset);
  if (!finding.key.empty())
    line += fmt::format("key \"{}\" ", printable(finding.key));
  if (!line.empty())
    line.replace(line.size() - 1, 1, ": ");
  return fmt::format("{}{}; {}", line, printable(finding.text), printable(finding.remedy));
}

std::string audit_text(const AuditReport& report, const engine::AuditFindings& findings) {
  std::string text;
  const auto shown = static_cast<std::int64_t>(report.findings.size());
  if (findings.total() > shown)
    text += fmt::format("... and {} more; --max-findings shows them\n", findings.total() - shown);
  if (findings.total() > 0)
    text += '\n';
  text += report.fast ? partitions_compared(report, findings) : partitions_read(report, findings);
  if (report.partitions.empty())
    text += "No offset is stored for these topics yet.\n";
  text += queries_text(report);
  if (findings.total() == 0) {
    text +=
        report.fast ? "Positions and counters agree; no record was read.\n" : "The books agree.\n";
  } else {
    text += fmt::format("{} finding{}.\n", findings.total(), findings.total() == 1 ? "" : "s");
  }
  return text;
}

int audit_exit_code(const engine::AuditFindings& findings) {
  if (findings.total() > findings.incomplete())
    return kNeedsSomebody;
  return findings.incomplete() > 0 ? kFailed : kDone;
}

std::string audit_json(const Options& options, const AuditReport& report,
                       const engine::AuditFindings& findings) {
  Json root;
  root["cluster"] = options.kafka.cluster;
  root["group"] = options.kafka.group;
  root["fast"] = report.fast;
  root["incomplete"] = findings.incomplete() > 0;
  root["findings_total"] = findings.total();
  auto& list = root["findings"] = Json::array();
  for (const auto& finding : report.findings)
    list.push_back(json_of(finding));
  auto& partitions = root["partitions"] = Json::array();
  for (const auto& partition : report.partitions)
    partitions.push_back(json_of(report, partition, findings));
  auto& checks = root["checks"] = Json::array();
  for (const auto& query : report.queries)
    checks.push_back(json_of(report, query));
  return indented(root) + '\n';
}

}  // namespace pawl::cli
