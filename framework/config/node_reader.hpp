#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "config/document.hpp"
#include "config/problems.hpp"

namespace pawl::config {

/// What reading options found: problems, and for each option the node that it came from.
struct Findings {
  std::vector<Problem> problems;
  std::map<std::string, const Node*> nodes;

  void report(const Node& node, std::string option, std::string what, std::string fix);
};

/// Reads the options of one table into typed variables. A key that is absent and a value of the
/// wrong type leave the variable as it is; the latter is a problem. Nothing is converted silently,
/// except that a --set takes any text for a string: a shell cannot show quotes.
class Reader {
 public:
  Reader(const Node& table, std::string name, Findings& findings)
      : table_(table), name_(std::move(name)), findings_(findings) {}

  [[nodiscard]] Reader section(const std::string& key) const;
  [[nodiscard]] std::string option(const std::string& key) const { return dotted(name_, key); }

  /// The node of a key, noted as the origin of its option; nullptr when absent.
  [[nodiscard]] const Node* node(const std::string& key) const;

  void text(const std::string& key, std::string& out) const;
  void texts(const std::string& key, std::vector<std::string>& out) const;
  void flag(const std::string& key, bool& out) const;
  void duration(const std::string& key, std::chrono::milliseconds& out) const;
  void durations(const std::string& key, std::vector<std::chrono::milliseconds>& out) const;
  void size(const std::string& key, std::size_t& out) const;

  /// A whole number that is not negative.
  template <typename Unsigned>
  void count(const std::string& key, Unsigned& out) const {
    const Node* const found = node(key);
    if (found == nullptr)
      return;
    std::uint64_t number = 0;
    if (is_count(*found, option(key), std::numeric_limits<Unsigned>::max(), number)) {
      out = static_cast<Unsigned>(number);
    }
  }

  /// Which of `names` the value is; nullopt: the key is absent, or none (a problem).
  [[nodiscard]] std::optional<std::size_t> choice(const std::string& key,
                                                  const std::vector<std::string_view>& names) const;

  /// The string of a node; else a problem and false.
  [[nodiscard]] bool is_text(const Node& found, const std::string& option, std::string& out) const;
  /// The duration of a node; else a problem and false.
  [[nodiscard]] bool is_duration(const Node& found, const std::string& option,
                                 std::chrono::milliseconds& out) const;
  [[nodiscard]] bool is_count(const Node& found, const std::string& option, std::uint64_t most,
                              std::uint64_t& out) const;

 private:
  const Node& table_;
  std::string name_;
  Findings& findings_;
};

}  // namespace pawl::config
