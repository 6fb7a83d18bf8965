#include "cli/key_estimate.hpp"

#include <fmt/format.h>

#include <cmath>

#include "config/units.hpp"
#include "console/json.hpp"

namespace pawl::cli {
namespace {

constexpr double kPage = 8192;
constexpr double kPageHeader = 24;
constexpr double kLinePointer = 4;
/// From here on a table tells its row size better than the layout does.
constexpr double kEnoughRows = 10000;
/// The tenth of a retention that comes together between two sweeps, and removed rows that wait for
/// vacuum.
constexpr double kSlack = 1.12;
/// B-tree leaves: filled by 90 % when keys come in order, by about 69 % when they come at random.
constexpr double kOrderedFill = 0.90;
constexpr double kRandomFill = 0.69;

// Write-ahead log of one key of 36 bytes, measured (docs/retention.md): of random ones on 20
// million rows. Keys in order touch few pages. Each random one touches another page of the index,
// which is logged whole once after every checkpoint.
constexpr double kOrderedWal = 251;
constexpr double kRandomWal = 1462;
constexpr double kWalKeyBytes = 36;
/// Of the removal of one key and of vacuum behind it, when a tenth of the table goes at once.
constexpr double kOrderedRemovalWal = 170;
constexpr double kRandomRemovalWal = 660;

constexpr double kSecondsPerDay = 86400;

double align(double bytes) {
  return std::ceil(bytes / 8) * 8;
}

/// Length word of a text: 1 byte up to 126 bytes, else 4.
double text_bytes(std::int64_t bytes) {
  return static_cast<double>(bytes <= 126 ? bytes + 1 : bytes + 4);
}

/// Bytes per row where a page holds whole rows only (PostgreSQL manual, 73.6 "Database Page
/// Layout").
double on_pages(double row, double fill) {
  const auto usable = (kPage - kPageHeader) * fill;
  return kPage / static_cast<double>(static_cast<std::int64_t>(usable / (row + kLinePointer)));
}

std::string human(double bytes) {
  const char* const units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
  std::size_t unit = 0;
  while (bytes >= 1024 && unit + 1 < std::size(units)) {
    bytes /= 1024;
    ++unit;
  }
  return fmt::format("{:.{}f} {}", bytes, unit == 0 ? 0 : 1, units[unit]);
}

std::string count(double number) {
  const auto digits = fmt::format("{:.0f}", number);
  std::string grouped;
  for (std::size_t i = 0; i < digits.size(); ++i) {
    if (i > 0 && (digits.size() - i) % 3 == 0)
      grouped += ',';
    grouped += digits[i];
  }
  return grouped;
}

}  // namespace

KeyEstimate estimate_keys(const KeyLoad& load, const std::optional<ledger::KeyTableSize>& table) {
  KeyEstimate result;
  if (table && table->rows >= kEnoughRows) {
    result.measured = true;
    result.measured_rows = table->rows;
    result.table_per_row = static_cast<double>(table->table_bytes) / table->rows;
    result.index_per_row = static_cast<double>(table->index_bytes) / table->rows;
    result.random_index_per_row = result.index_per_row;
  } else {
    // Header of 24; scope_id 4 and key; then from a multiple of 8 on payload_hash, source_id,
    // partition, kafka_offset, created_at: 32. No response.
    const double row = align(24 + 4 + text_bytes(load.key_bytes)) + 32;
    const double entry = align(8 + 4 + text_bytes(load.key_bytes));
    result.table_per_row = on_pages(row, 1);
    result.index_per_row = on_pages(entry, kOrderedFill);
    result.random_index_per_row = on_pages(entry, kRandomFill);
  }
  const auto seconds = std::chrono::duration<double>(load.retention).count();
  result.rows = load.rate * seconds * kSlack;
  result.table = result.rows * result.table_per_row;
  result.index = result.rows * result.index_per_row;
  result.random_index = result.rows * result.random_index_per_row;
  // The key stands in the records of the table and of the index.
  const double longer = 2 * (static_cast<double>(load.key_bytes) - kWalKeyBytes);
  const double per_day = load.rate * kSecondsPerDay;
  result.wal_per_day = per_day * (kOrderedWal + longer + kOrderedRemovalWal);
  result.random_wal_per_day = per_day * (kRandomWal + longer + kRandomRemovalWal);
  return result;
}

std::optional<std::string> log_size_advice(const ledger::KeyTableSize& table,
                                           std::int64_t max_wal_size) {
  // A checkpoint begins at about half of max_wal_size, and random keys may have touched the whole
  // index by then. Ten times the index was measured to be enough (docs/retention.md).
  if (table.index_bytes <= max_wal_size / 2)
    return std::nullopt;
  constexpr std::int64_t kGiB = std::int64_t{1} << 30U;
  const auto enough = (10 * table.index_bytes + kGiB - 1) / kGiB;
  return fmt::format(
      "max_wal_size is {}, and the index of the idempotency keys has {}. With random keys, most of "
      "the WAL is full pages after each checkpoint. For more messages per second, use keys in "
      "ascending "
      "order (UUIDv7), or set:\n"
      "  ALTER SYSTEM SET max_wal_size = '{}GB';\n"
      "  ALTER SYSTEM SET checkpoint_timeout = '30min';\n"
      "  SELECT pg_reload_conf();",
      human(static_cast<double>(max_wal_size)), human(static_cast<double>(table.index_bytes)),
      enough);
}

std::string to_text(const KeyLoad& load, const KeyEstimate& estimate) {
  std::string text = fmt::format(
      "{} keys: {} per second, kept for {}, and {:.0f} % more that wait for the next removal "
      "and "
      "for vacuum\n",
      count(estimate.rows), load.rate, config::format_duration(load.retention), (kSlack - 1) * 100);
  if (estimate.measured) {
    text += fmt::format(
        "table  {:>12}  {:.0f} bytes per row, measured on the {} stored rows\n"
        "index  {:>12}  {:.0f} bytes per row, measured\n"
        "total  {:>12}\n",
        human(estimate.table), estimate.table_per_row, count(estimate.measured_rows),
        human(estimate.index), estimate.index_per_row, human(estimate.table + estimate.index));
  } else {
    text += fmt::format(
        "table  {:>12}  {:.0f} bytes per row: a key of {} bytes, no response, from the page "
        "layout\n"
        "index  {:>12}  {:.0f} bytes per row for ascending keys (UUIDv7, ULID, counters): pages "
        "are "
        "{:.0f} % full\n"
        "       {:>12}  {:.0f} bytes per row for random keys (UUIDv4, hashes): {:.0f} % full\n"
        "total  {:>12}  to {}\n",
        human(estimate.table), estimate.table_per_row, load.key_bytes, human(estimate.index),
        estimate.index_per_row, kOrderedFill * 100, human(estimate.random_index),
        estimate.random_index_per_row, kRandomFill * 100, human(estimate.table + estimate.index),
        human(estimate.table + estimate.random_index));
  }
  text += fmt::format(
      "WAL of the keys per day\n"
      "       {:>12}  for ascending keys: {:.0f} bytes per key, including its removal\n"
      "       {:>12}  for random keys and a large table: {:.0f} bytes per key, mostly full pages "
      "after "
      "a checkpoint. A larger max_wal_size reduces it.\n"
      "Stored responses, the tables and indexes of the handlers, and their WAL are not included.\n",
      human(estimate.wal_per_day), estimate.wal_per_day / (load.rate * kSecondsPerDay),
      human(estimate.random_wal_per_day),
      estimate.random_wal_per_day / (load.rate * kSecondsPerDay));
  return text;
}

std::string to_json(const KeyLoad& load, const KeyEstimate& estimate) {
  Json json;
  const auto whole = [](double number) { return static_cast<std::int64_t>(number + 0.5); };
  json["rate"] = load.rate;
  json["retention_ms"] = load.retention.count();
  json["key_bytes"] = estimate.measured ? Json(nullptr) : Json(load.key_bytes);
  json["measured"] = estimate.measured;
  json["rows"] = whole(estimate.rows);
  json["table_bytes"] = whole(estimate.table);
  json["index_bytes"] = whole(estimate.index);
  json["random_index_bytes"] = whole(estimate.random_index);
  json["wal_bytes_per_day"] = whole(estimate.wal_per_day);
  json["random_wal_bytes_per_day"] = whole(estimate.random_wal_per_day);
  return indented(json) + '\n';
}

}  // namespace pawl::cli
