#pragma once

#include <vector>

#include "audit/store/view.hpp"
#include "postgres/parameters.hpp"

namespace pawl::ledger {

/// An array of PostgreSQL's as text, for texts of any content but NUL.
[[nodiscard]] std::string text_array(std::span<const std::string> texts);

/// Ranges as parameters of the audit's statements: topic, partition, after, upto.
void add_range(postgres::Parameters& parameters, const OffsetRange& range);
/// Many ranges as parameters: four arrays.
void add_ranges(postgres::Parameters& parameters, const std::vector<OffsetRange>& ranges);

}  // namespace pawl::ledger
