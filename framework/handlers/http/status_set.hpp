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
  kNotDone,    ///< and may be done later: the other side says that it did not begin
  kUnknown,    ///< it may have been done
  kPermanent,  ///< not done, and no attempt can help
};
struct StatusSets {
  StatusSet success;
  StatusSet retry;
  StatusSet permanent;
};
/// Of a status in several sets the first of success, permanent and retry counts. 425, 429 and 503
/// say that nothing was done (RFC 8470, RFC 6585, RFC 9110); of others to be retried nobody knows.
[[nodiscard]] StatusMeaning meaning_of(long status, const StatusSets& sets);

}  // namespace pawl::handlers
