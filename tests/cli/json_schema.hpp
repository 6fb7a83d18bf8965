#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace pawl::testing {

/// The JSON schemas of docs/reference/json by their names: "offsets-show".
const std::map<std::string, nlohmann::json>& json_schemas();

/// The one of the page /status of a process. All others are of commands.
inline constexpr const char* kStatusPage = "http-status";

/// The schema of a command line, without options: "dlq-show" of {"dlq", "show", "1"}. Empty: none.
std::string schema_name(const std::vector<std::string>& arguments);

/// Where a value violates a schema; empty: nowhere. Knows type, enum, format date-time, properties,
/// required, items, anyOf, and $ref to $defs. It is stricter than JSON Schema: an object has no
/// members other than those that `properties` lists, so that the documents name every key.
std::string violation(const nlohmann::json& value, const nlohmann::json& schema);

/// Throws std::runtime_error if the output of a command with --json violates its schema. Output of
/// several lines, as of tail, is one value per line.
void require_schema(const std::vector<std::string>& arguments, const std::string& output);

}  // namespace pawl::testing
