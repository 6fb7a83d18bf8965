#include "payment_series.hpp"

#include <fmt/format.h>

#include <string_view>

namespace payments {
namespace {

constexpr std::int64_t kOneDuplicateIn = 100;
constexpr std::int64_t kLatestDuplicate = 2000;  // messages behind the first delivery

}  // namespace

std::string Event::json(std::size_t length) const {
  constexpr std::string_view kNoteFrame = R"(,"note":"")";
  auto text = fmt::format(R"({{"account":"{}","amount":{}}})", account, amount);
  if (text.size() + kNoteFrame.size() < length) {
    text.pop_back();
    const std::string note(length - text.size() - kNoteFrame.size() - 1, '.');
    text += fmt::format(R"(,"note":"{}"}})", note);
  }
  return text;
}

PaymentSeries::PaymentSeries(std::uint64_t seed, Size size)
    : seed_(seed), size_(size), random_(seed), random_for_ids_(seed) {}

// Not std::uniform_int_distribution: it may differ from one standard library to the next.
std::int64_t PaymentSeries::random(std::int64_t low, std::int64_t high) {
  const auto width = static_cast<std::uint64_t>(high - low + 1);
  return low + static_cast<std::int64_t>(random_() % width);
}

std::string PaymentSeries::next_id() {
  if (!size_.random_ids)
    return fmt::format("payment-{}-{:08}", seed_, made_);
  const auto high = random_for_ids_();
  const auto low = random_for_ids_();
  return fmt::format("{:08x}-{:04x}-{:04x}-{:04x}-{:012x}", high >> 32U, high >> 16U & 0xffffU,
                     high & 0xffffU, low >> 48U, low & 0xffff'ffff'ffffU);
}

Event PaymentSeries::make_payment() {
  Event event;
  event.id = next_id();
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
