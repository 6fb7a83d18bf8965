#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "cli/status.hpp"
#include "ledger/register_view.hpp"

namespace pawl::cli {

/// What the reader can do: a command to paste, or a sentence.
struct Step {
  std::string text;
  std::string comment = {};  ///< of a command: when it applies
};

/// A condition that needs attention or explains a delay. Partitions with the same cause are one
/// problem.
struct Problem {
  std::string heading;             ///< "HALTED"
  std::vector<std::string> title;  ///< "payments[7]@341", "book-payment", "since 16:59:58"
  std::vector<std::string> texts;  ///< cause, then effect: sentences
  std::vector<Step> steps;
};

/// The most urgent first; those of one heading are adjacent.
[[nodiscard]] std::vector<Problem> problems_of(const Status& status);

/// The page about a heading, as texts name pages: "docs/runbook/halts.md". Empty: no such heading.
[[nodiscard]] std::string_view page_of(std::string_view heading);

/// Why a partition is halted or paused, for people.
struct HaltView {
  std::string handler;  ///< empty: unknown, or the halt concerns no handler
  std::string cause;
  std::string advice;  ///< sentences; empty: the comments of the steps say when each applies
  std::vector<Step> steps;
};
/// Of a halted or paused partition. The only function that reads how a halt is stored.
[[nodiscard]] HaltView halt_view(const Status& status, const ledger::RegisterRow& row);

/// How long ago a time in RFC 3339 was; "?" if it is none.
[[nodiscard]] std::string age_text(const Status& status, const std::string& time);

}  // namespace pawl::cli
