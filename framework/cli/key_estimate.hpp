#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include "ledger/key_view.hpp"

namespace pawl::cli {

/// What is asked: messages with a key per second, and how long the keys are kept.
struct KeyLoad {
  double rate = 0;
  std::chrono::milliseconds retention{0};
  std::int64_t key_bytes = 36;  ///< a UUID as text
};

/// What keys cost; bytes unless said otherwise.
struct KeyEstimate {
  bool measured = false;     ///< per row from the real table, not from the page layout
  double measured_rows = 0;  ///< of that table
  double table_per_row = 0;
  double index_per_row = 0;  ///< of time-ordered keys, unless measured
  double random_index_per_row = 0;
  double rows = 0;
  double table = 0;
  double index = 0;
  double random_index = 0;
  double wal_per_day = 0;         ///< of time-ordered keys
  double random_wal_per_day = 0;  ///< of random ones, when the index no longer fits into memory
};

/// Pure arithmetic. `table`: what the real table takes; used when it has rows enough to tell.
[[nodiscard]] KeyEstimate estimate_keys(const KeyLoad& load,
                                        const std::optional<ledger::KeyTableSize>& table);

/// What to set where PostgreSQL's max_wal_size (bytes) is small for the index of the keys: after
/// each checkpoint the first change of a page of it is logged with the whole page. Nullopt: it is
/// not small.
[[nodiscard]] std::optional<std::string> log_size_advice(const ledger::KeyTableSize& table,
                                                         std::int64_t max_wal_size);

/// The figures with where they come from.
[[nodiscard]] std::string to_text(const KeyLoad& load, const KeyEstimate& estimate);
[[nodiscard]] std::string to_json(const KeyLoad& load, const KeyEstimate& estimate);

}  // namespace pawl::cli
