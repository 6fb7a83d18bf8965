#include "payment_series.hpp"

#include <fmt/format.h>

namespace payments {
namespace {

constexpr std::int64_t kOneDuplicateIn = 100;
constexpr std::int64_t kLatestDuplicate = 2000;  // messages behind the first delivery

}  // namespace

std::string Event::json() const {
  return fmt::format(R"({{"account":"{}","amount":{}}})", account, amount);
}

PaymentSeries::PaymentSeries(std::uint64_t seed, Size size)
    : seed_(seed), size_(size), random_(seed) {}

// Not std::uniform_int_distribution: it may differ from one standard library to the next.
std::int64_t PaymentSeries::random(std::int64_t low, std::int64_t high) {
  const auto width = static_cast<std::uint64_t>(high - low + 1);
  return low + static_cast<std::int64_t>(random_() % width);
}

Event PaymentSeries::make_payment() {
  Event event;
  event.id = fmt::format("payment-{}-{:08}", seed_, made_);
  event.account = fmt::format("account-{:04}", random(0, size_.accounts - 1));
  event.amount = random(1, 100'000);
  sum_ += event.amount;
  auto& totals = totals_[event.account];
  totals.balance += event.amount;
  ++totals.entries;
  if (made_ % kOneDuplicateIn == kOneDuplicateIn / 2) {
    auto again = event;
    if (duplicates_ % 2 == 1) {
      again.partition = static_cast<std::int32_t>(random(0, size_.partitions - 1));
    }
    again_.emplace(sent_ + random(0, kLatestDuplicate), std::move(again));
    ++duplicates_;
  }
  ++made_;
  return event;
}

std::optional<Event> PaymentSeries::next() {
  const bool more = made_ < size_.payments;
  if (!more && again_.empty())
    return std::nullopt;
  Event event;
  if (!again_.empty() && (!more || again_.begin()->first < sent_)) {
    event = std::move(again_.begin()->second);
    again_.erase(again_.begin());
  } else {
    event = make_payment();
  }
  ++sent_;
  return event;
}

}  // namespace payments
