#pragma once

#include "config/option_table.hpp"

namespace pawl::config {

// The options that are no plain values: how each is read, and written.

void read_start(const Reader& kafka, Findings& findings, Settings& out);
void read_partitions(const Reader& kafka, Findings& findings, Settings& out);
void read_properties(const Reader& kafka, Findings& findings, Settings& out);
void read_audit_sql(const Reader& audit, Findings& findings, Settings& out);
void read_statements(const Reader& handler, Findings& findings, Settings& out);
void read_retention(const Reader& handler, Findings& findings, Settings& out);
void read_response(const Reader& handler, Findings& findings, Settings& out);
void read_http(const Reader& handler, Findings& findings, Settings& out);

[[nodiscard]] Node start_value(Settings& settings);
[[nodiscard]] Node partitions_value(Settings& settings);
[[nodiscard]] Node properties_value(Settings& settings);
[[nodiscard]] Node audit_sql_value(Settings& settings);
[[nodiscard]] Node statements_value(Settings& settings);
/// That of retention.keys where the handler has none.
[[nodiscard]] Node retention_value(Settings& settings);
[[nodiscard]] Node response_value(Settings& settings);
/// As it was written: what ${...} stands for is not shown.
[[nodiscard]] Node http_value(Settings& settings);

}  // namespace pawl::config
