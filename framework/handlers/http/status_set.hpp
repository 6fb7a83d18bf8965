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

  /// By its own number.
  [[nodiscard]] bool names(long status) const { return has(named_, status); }
  /// By that, or by its class: "2xx".
  [[nodiscard]] bool contains(long status) const { return names(status) || has(classes_, status); }

 private:
  using Statuses = std::bitset<600>;

  static bool has(const Statuses& statuses, long status) {
    return status >= 0 && static_cast<std::size_t>(status) < statuses.size() &&
           statuses.test(static_cast<std::size_t>(status));
  }

  Statuses named_;
  Statuses classes_;
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
  StatusSet not_done;
  StatusSet retry;
  StatusSet permanent;
};
/// The first set that names the status counts, else the first that has its class; what is in none
/// is permanent. What is no final answer (below 200) says nothing: unknown.
[[nodiscard]] StatusMeaning meaning_of(long status, const StatusSets& sets);

}  // namespace pawl::handlers
