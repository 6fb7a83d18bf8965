#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <random>
#include <string>

namespace payments {

/// One message to produce.
struct Event {
  std::string id;
  std::string account;
  std::int64_t amount = 0;
  std::optional<std::int32_t> partition;  ///< absent: chosen by the account

  /// Filled up with a note to the length that is asked for, when it would be shorter.
  [[nodiscard]] std::string json(std::size_t length = 0) const;
};

struct AccountTotals {
  std::int64_t balance = 0;
  std::int64_t entries = 0;
};

/// A series of payments that is the same whenever seed and sizes are, with duplicates: one payment
/// in a hundred comes a second time, some messages later, every other one in another partition.
/// Counts the totals that a consumer must reach.
class PaymentSeries {
 public:
  struct Size {
    std::int64_t payments = 0;
    std::int32_t accounts = 1;
    std::int32_t partitions = 1;
    bool random_ids = false;  ///< ids without an order, as random UUIDs have none
  };

  PaymentSeries(std::uint64_t seed, Size size);

  /// The next message; nullopt when all have been taken.
  std::optional<Event> next();

  [[nodiscard]] std::int64_t duplicates() const { return duplicates_; }
  [[nodiscard]] std::int64_t sum() const { return sum_; }
  [[nodiscard]] const std::map<std::string, AccountTotals>& totals() const { return totals_; }

 private:
  Event make_payment();
  [[nodiscard]] std::string next_id();
  std::int64_t random(std::int64_t low, std::int64_t high);

  std::uint64_t seed_;
  Size size_;
  std::mt19937_64 random_;
  std::mt19937_64 random_for_ids_;  ///< apart, so that the amounts stay the same
  std::int64_t made_ = 0;
  std::int64_t sent_ = 0;
  std::int64_t duplicates_ = 0;
  std::int64_t sum_ = 0;
  std::map<std::string, AccountTotals> totals_;
  std::multimap<std::int64_t, Event> again_;  ///< duplicates to come, by the message they follow
};

}  // namespace payments
