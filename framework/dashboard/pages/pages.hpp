#pragma once

#include <optional>
#include <string>
#include <vector>

#include "dashboard/data.hpp"

namespace pawl::dashboard {

/// Pages of HTML, made of what was read and of nothing else. Whatever comes from elsewhere is
/// escaped; keys, values, headers and details of errors are shown to those alone who may act.

[[nodiscard]] std::string partitions_html(const Frame& frame, const PartitionsPage& page);
[[nodiscard]] std::string partition_html(const Frame& frame, const PartitionPage& page);
[[nodiscard]] std::string letters_html(const Frame& frame, const LettersPage& page);
[[nodiscard]] std::string letter_html(const Frame& frame, const LetterPage& page);
/// `page` nullopt: nothing was asked for yet.
[[nodiscard]] std::string keys_html(const Frame& frame, const std::optional<KeysPage>& page);
[[nodiscard]] std::string outbox_html(const Frame& frame, const OutboxPage& page);
[[nodiscard]] std::string leases_html(const Frame& frame, const LeasesPage& page);
[[nodiscard]] std::string history_html(const Frame& frame, const HistoryPage& page);
[[nodiscard]] std::string sign_in_html(const Frame& frame, const std::string& name);
/// Only what `frame` says.
[[nodiscard]] std::string message_html(const Frame& frame, const std::string& title);

/// A line over the values, of which those that are unknown leave a gap; "" for fewer than two. For
/// eyes only: the number beside it says the same.
[[nodiscard]] std::string sparkline(const std::vector<std::optional<double>>& all);

}  // namespace pawl::dashboard
