#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "config/problems.hpp"

namespace pawl::config {

/// Where nodes come from: the user's file, or one --set.
struct Source {
  std::string name;    ///< the file's path as given, or "--set kafka.group"
  std::string text;    ///< the file's content; empty for --set
  std::string folder;  ///< where ${file:...} with a relative path begins; empty: working directory
  bool command_line = false;
};

/// One value of a config, with its place. A tree of its own instead of toml++'s: nodes keep their
/// place when files are merged, and strings keep what was written beside what it stands for.
struct Node {
  enum class Kind { kString, kInteger, kFloat, kBoolean, kTime, kLocalTime, kArray, kTable };

  Kind kind = Kind::kTable;
  std::string written;       ///< strings: as written; --set: the value as typed, whatever its kind
  std::string value;         ///< strings: with ${...} replaced
  bool typed = false;        ///< the whole value of a --set: what the shell left of it
  bool substituted = false;  ///< `value` holds something that errors must not show
  std::int64_t integer = 0;
  bool boolean = false;
  std::int64_t time_ms = 0;  ///< kTime: since 1970-01-01T00:00:00Z
  std::vector<Node> items;
  std::map<std::string, Node> members;

  std::shared_ptr<const Source> source;
  std::size_t line = 0;    ///< from 1; 0 for --set
  std::size_t column = 0;  ///< from 1, in characters

  /// "conf/payments.toml:12" or "--set kafka.group".
  [[nodiscard]] std::string where() const;

  /// "conf/payments.toml:12:20", a place in a string's value as a place in the file. nullopt when
  /// the file does not hold the value verbatim (escapes, substitutions, --set).
  [[nodiscard]] std::optional<std::string> where_at(const TextPlace& place) const;

  /// "the integer 45", "the string \"abc\"", "an array", as error texts name it.
  [[nodiscard]] std::string describe() const;

  [[nodiscard]] const Node* member(const std::string& name) const;
};

/// A problem with what a node holds.
[[nodiscard]] Problem problem_at(const Node& node, std::string option, std::string what,
                                 std::string fix);

/// Reads TOML 1.0. On a syntax error adds a problem and returns nullopt.
[[nodiscard]] std::optional<Node> parse_document(const std::shared_ptr<const Source>& source,
                                                 std::vector<Problem>& problems);

/// The value of a --set: any TOML value, else the text as it stands.
[[nodiscard]] Node parse_override_value(const std::shared_ptr<const Source>& source,
                                        std::string_view text);

/// RFC 3339 with time zone to milliseconds since 1970; nullopt when it is something else.
[[nodiscard]] std::optional<std::int64_t> parse_time(std::string_view text);

/// Tables of `over` go into tables of `base` key by key; everything else replaces.
void merge(Node& base, const Node& over);

}  // namespace pawl::config
