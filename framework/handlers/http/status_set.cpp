#include "handlers/http/status_set.hpp"

#include <array>
#include <cctype>
#include <utility>

namespace pawl::handlers {

std::optional<StatusSet> StatusSet::parse(std::string_view text) {
  StatusSet set;
  while (!text.empty()) {
    const auto comma = text.find(',');
    auto item = text.substr(0, comma);
    while (item.starts_with(' '))
      item.remove_prefix(1);
    while (item.ends_with(' '))
      item.remove_suffix(1);
    if (item.size() != 3 || item[0] < '1' || item[0] > '5')
      return std::nullopt;
    const auto hundred = static_cast<std::size_t>(item[0] - '0') * 100;
    if (item.substr(1) == "xx") {
      for (std::size_t i = 0; i < 100; ++i)
        set.classes_.set(hundred + i);
    } else if (std::isdigit(static_cast<unsigned char>(item[1])) != 0 &&
               std::isdigit(static_cast<unsigned char>(item[2])) != 0) {
      set.named_.set(hundred + static_cast<std::size_t>(item[1] - '0') * 10 +
                     static_cast<std::size_t>(item[2] - '0'));
    } else {
      return std::nullopt;
    }
    if (comma == std::string_view::npos)
      break;
    text.remove_prefix(comma + 1);
    // A status follows each comma.
    if (text.empty())
      return std::nullopt;
  }
  return set;
}

namespace {

CallMeaning meaning_of_status(long status, const StatusSets& sets) {
  const std::array all{std::pair{&sets.success, CallMeaning::kDone},
                       std::pair{&sets.not_done, CallMeaning::kNotDone},
                       std::pair{&sets.retry, CallMeaning::kUnknown},
                       std::pair{&sets.permanent, CallMeaning::kPermanent}};
  for (const auto& [set, meaning] : all) {
    if (set->names(status))
      return meaning;
  }
  for (const auto& [set, meaning] : all) {
    if (set->contains(status))
      return meaning;
  }
  return CallMeaning::kPermanent;
}

}  // namespace

CallMeaning meaning_of(const Exchange& exchange, const StatusSets& sets) {
  if (!exchange.sent)
    return exchange.connected ? CallMeaning::kNotSent : CallMeaning::kUnreachable;
  if (exchange.status < 200)
    return CallMeaning::kNoAnswer;
  const auto meaning = meaning_of_status(exchange.status, sets);
  if (meaning == CallMeaning::kNotDone && sets.outage.contains(exchange.status))
    return CallMeaning::kOutage;
  return meaning == CallMeaning::kDone && !exchange.whole ? CallMeaning::kNoAnswer : meaning;
}

}  // namespace pawl::handlers
