#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace pawl::test {

/// Two kinds of handler on one topic, what happens to messages that fail, and a mode.
struct Combination {
  std::string first;   ///< the kind of the handler that comes first
  std::string second;  ///< of the one behind it; another one
  std::string policy;  ///< failures.on_failure
  std::string mode;

  [[nodiscard]] std::string name() const {
    return first + ", " + second + ", " + policy + ", " + mode;
  }
  friend bool operator==(const Combination&, const Combination&) = default;
};

/// A kind of handler, as a [[handler]] says it.
struct HandlerKind {
  std::string name;
  std::string toml;  ///< "API" stands for the address of the API that it calls
  bool batches = false;
  bool calls = false;
  bool writes = true;  ///< a message of it enters the ledger
};

/// A mode that holds for both handlers.
struct TopicMode {
  std::string name;
  std::string first = {};                  ///< options of the first handler
  std::vector<std::string> settings = {};  ///< `--set`
  bool by_key = false;  ///< messages complete in the order of their record key only
};

[[nodiscard]] const HandlerKind& handler_kind(const std::string& name);
[[nodiscard]] const TopicMode& topic_mode(const std::string& name);

/// Each combination that is not refused, in a fixed order.
[[nodiscard]] const std::vector<Combination>& all_combinations();

/// So few of them that any two values of two different columns that occur together in one of
/// `all` occur together in one of these. The same choice each time.
[[nodiscard]] std::vector<Combination> pairwise(const std::vector<Combination>& all);

/// Those of this run: pairwise(), or all of them with PAWL_COMBINATIONS=all, or each whose name
/// contains the variable's text.
[[nodiscard]] std::vector<Combination> chosen_combinations();

}  // namespace pawl::test
