#pragma once

#include <bitset>
#include <optional>
#include <string>
#include <string_view>

namespace pawl::handlers {

/// Some HTTP statuses, written "200,201" or "2xx,304" (RFC 9110, section 15).
class StatusSet {
 public:
  /// Nullopt: no list of statuses, from 100 to 599.
  [[nodiscard]] static std::optional<StatusSet> parse(std::string_view text);

  [[nodiscard]] bool contains(long status) const {
    return status >= 0 && static_cast<std::size_t>(status) < statuses_.size() &&
           statuses_.test(static_cast<std::size_t>(status));
  }

 private:
  std::bitset<600> statuses_;
};

/// What a status says of the call.
enum class StatusMeaning {
  kDone,
  kNotDone,    ///< and may be done later
  kUnknown,    ///< it may have been done
  kPermanent,  ///< not done, and no attempt can help
};
struct StatusSets {
  StatusSet success;
  StatusSet retry;
  StatusSet not_done;  ///< those of `retry` that say that nothing was done
};
/// Of a status in several sets the first counts; what is in none is permanent.
[[nodiscard]] StatusMeaning meaning_of(long status, const StatusSets& sets);

}  // namespace pawl::handlers
