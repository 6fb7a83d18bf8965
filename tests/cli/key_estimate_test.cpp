#include "cli/key_estimate.hpp"

#include "prelude.hpp"

using namespace pawl::cli;

TEST_CASE("an estimate follows from the page layout, or from the rows that are there") {
  KeyLoad load;
  load.rate = 100;
  load.retention = 24h;
  const auto layout = estimate_keys(load, std::nullopt);
  CHECK_FALSE(layout.measured);
  CHECK(layout.table_per_row > 105);
  CHECK(layout.table_per_row < 115);
  CHECK(layout.random_index_per_row > layout.index_per_row);
  CHECK(layout.rows > 100 * 86400);
  CHECK(layout.wal_per_day < layout.random_wal_per_day);

  // Too few rows tell nothing.
  CHECK_FALSE(estimate_keys(load, ledger::KeyTableSize{10, 8192, 8192}).measured);
  const auto measured = estimate_keys(load, ledger::KeyTableSize{1e6, 200'000'000, 100'000'000});
  CHECK(measured.measured);
  CHECK(measured.table_per_row == 200);
  CHECK(measured.index_per_row == 100);
}

TEST_CASE("a max_wal_size that is small for the index of the keys is reported") {
  constexpr std::int64_t kGiB = std::int64_t{1} << 30U;
  CHECK(log_size_advice({1e6, 0, kGiB / 2}, kGiB) == std::nullopt);
  const auto advice = log_size_advice({3e7, 0, 2 * kGiB}, kGiB);
  REQUIRE(advice);
  CHECK_THAT(*advice, ContainsSubstring("max_wal_size is 1.0 GiB, and the index of the idempotency "
                                        "keys has 2.0 GiB") &&
                          ContainsSubstring("SET max_wal_size = '20GB'"));
  CHECK(log_size_advice({3e7, 0, 2 * kGiB}, 20 * kGiB) == std::nullopt);
}
