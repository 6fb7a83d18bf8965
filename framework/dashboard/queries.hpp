#pragma once

#include <optional>
#include <string>

#include "dashboard/data.hpp"
#include "ledger/register_view.hpp"
#include "pawl/options.hpp"
#include "postgres/session.hpp"

namespace pawl::dashboard {

/// So many rows a page has at most.
inline constexpr std::int64_t kMostPartitions = 1000;
inline constexpr std::int64_t kLettersOnPage = 100;
inline constexpr std::int64_t kMostRows = 100;
/// Unresolved letters are counted up to here.
inline constexpr std::int64_t kMostCounted = 10001;

/// What pages show, read by the commands' own queries. All throw postgres::Error, and FatalError
/// where the consumer is not known.

PartitionsPage read_partitions(postgres::Session& session, const Options& options,
                               const Samples& samples, const Fields& filters);
/// Nullopt: there is no such partition.
std::optional<PartitionPage> read_partition(postgres::Session& session, const Options& options,
                                            const Samples& samples,
                                            const TopicPartition& partition);
/// `by_key`: keys are searched; else they are left out, and the page says so.
LettersPage read_letters(postgres::Session& session, const Options& options, const Fields& query,
                         bool by_key);
std::optional<LetterPage> read_letter(postgres::Session& session, const Options& options,
                                      std::int64_t id, bool with_bytes);
KeysPage read_keys(postgres::Session& session, const Options& options, const std::string& key);
OutboxPage read_outbox(postgres::Session& session, const Options& options);
LeasesPage read_leases(postgres::Session& session, const Options& options);
HistoryPage read_history(postgres::Session& session, const Options& options, std::int64_t before);

/// What a form or a query says of letters; `problem` is set where a field cannot be read, or is not
/// for this person: whether a key is among the letters tells of a customer.
[[nodiscard]] ledger::DeadLetterFilter letter_filter(const Fields& query, bool by_key,
                                                     std::string& problem);
[[nodiscard]] std::optional<ledger::LetterPlace> place_after(const Fields& query);

}  // namespace pawl::dashboard
