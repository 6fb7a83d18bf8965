#include "audit/report.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>

#include "console/commands.hpp"
#include "console/counted.hpp"
#include "console/json.hpp"
#include "console/partition_view.hpp"
#include "console/printable.hpp"
#include "console/table.hpp"

namespace pawl::cli {
namespace {

using engine::AuditedPartition;

constexpr std::size_t kShownColumns = 8;

Table::Column right(const char* heading) {
  return {heading, Table::Align::kRight};
}

/// "0-1335": the records that were read.
std::string offsets_text(const ledger::OffsetRange& range) {
  if (range.after >= range.upto)
    return "-";
  return range.after + 1 == range.upto ? std::to_string(range.upto)
                                       : fmt::format("{}-{}", range.after + 1, range.upto);
}

/// A count of messages that ended in one way.
struct Figure {
  const char* heading;
  std::int64_t engine::AuditTally::* count;
};
constexpr Figure kFigures[] = {
    {"APPLIED", &engine::AuditTally::applied}, {"DUPLICATES", &engine::AuditTally::duplicates},
    {"DEAD", &engine::AuditTally::dead},       {"PARKED", &engine::AuditTally::parked},
    {"SKIPPED", &engine::AuditTally::skipped}, {"UNCHECKED", &engine::AuditTally::unchecked},
    {"TOO OLD", &engine::AuditTally::too_old}};

/// Without columns that are 0 in each row, unless all were asked for.
std::string partitions_read(const AuditReport& report, const engine::AuditFindings& findings,
                            std::size_t width) {
  std::vector<Figure> figures;
  std::ranges::copy_if(kFigures, std::back_inserter(figures), [&](const Figure& figure) {
    return report.verbose || std::ranges::any_of(report.partitions, [&](const auto& partition) {
             return partition.tally.*figure.count != 0;
           });
  });
  const bool any_findings =
      report.verbose || std::ranges::any_of(report.partitions, [&](const auto& partition) {
        return findings.of(partition.range.partition) != 0;
      });
  std::vector<Table::Column> columns{
      {"TOPIC"}, right("PARTITION"), right("OFFSETS"), right("READ")};
  for (const auto& figure : figures)
    columns.push_back(right(figure.heading));
  if (any_findings)
    columns.push_back(right("FINDINGS"));
  Table table(std::move(columns));
  for (const auto& partition : report.partitions) {
    const auto& range = partition.range;
    std::vector<std::string> cells{range.partition.topic, std::to_string(range.partition.partition),
                                   offsets_text(range), grouped(partition.tally.records)};
    for (const auto& figure : figures)
      cells.push_back(grouped(partition.tally.*figure.count));
    if (any_findings)
      cells.push_back(grouped(findings.of(range.partition)));
    table.add(cells);
  }
  return table.text(width);
}

std::string partitions_compared(const AuditReport& report, const engine::AuditFindings& findings,
                                std::size_t width) {
  Table table({{"TOPIC"},
               right("PARTITION"),
               right("LOG START"),
               right("END"),
               right("COUNTED FROM"),
               right("OFFSET"),
               right("COUNTED"),
               right("NOT COUNTED"),
               right("FINDINGS")});
  for (const auto& partition : report.partitions) {
    const auto& row = partition.row;
    table.add({row.partition.topic, std::to_string(row.partition.partition),
               std::to_string(partition.log.start), std::to_string(partition.log.end),
               std::to_string(row.base + 1), std::to_string(row.stored + 1), grouped(row.counted()),
               grouped(row.stored - row.base - row.counted()),
               grouped(findings.of(row.partition))});
  }
  return table.text(width);
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
      text +=
          fmt::format("check {}: {} ({})\n", query.name, counted(query.answer.count, "row", "rows"),
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
  if (finding.where) {
    line = finding.offset ? name_of(*finding.where, *finding.offset) : name_of(*finding.where);
  } else if (finding.offset) {
    line = fmt::format("offset {}", *finding.offset);
  }
  if (!finding.key.empty())
    line += fmt::format("{}key \"{}\"", line.empty() ? "" : " ", printable(finding.key));
  if (!line.empty())
    line += ": ";
  return fmt::format("{}{}; {}", line, printable(finding.text), printable(finding.remedy));
}

std::string audit_text(const AuditReport& report, const engine::AuditFindings& findings,
                       const Terminal& terminal) {
  std::string text;
  const auto shown = static_cast<std::int64_t>(report.findings.size());
  if (findings.total() > shown) {
    text += fmt::format("{}{} more: --max-findings N\n", symbol(terminal, Symbol::kMore),
                        grouped(findings.total() - shown));
  }
  if (findings.total() > 0)
    text += '\n';
  text += report.fast ? partitions_compared(report, findings, terminal.columns)
                      : partitions_read(report, findings, terminal.columns);
  if (report.partitions.empty())
    text += "No offset is stored for these topics yet.\n";
  text += queries_text(report);
  if (findings.total() > 0)
    return text + counted(findings.total(), "finding", "findings") + ".\n";
  const auto partitions = counted(std::ssize(report.partitions), "partition", "partitions");
  if (report.fast) {
    return text +
           fmt::format(
               "No inconsistencies found (offsets and counters of {}; no record was read).\n",
               partitions);
  }
  std::int64_t messages = 0;
  for (const auto& partition : report.partitions)
    messages += partition.tally.records;
  return text + fmt::format("No inconsistencies found ({} in {} checked).\n",
                            counted(messages, "message", "messages"), partitions);
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
