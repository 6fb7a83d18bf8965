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

struct StatusSets {
  StatusSet success;
  StatusSet not_done;
  StatusSet retry;
  StatusSet permanent;
  StatusSet outage = {};  ///< of those of not_done
};

/// How far a request came.
struct Exchange {
  bool sent = true;       ///< some of it may have left
  bool connected = true;  ///< false: nothing was sent, because no connection could be made
  bool whole = true;      ///< as much of the answer came as is kept
  long status = 0;        ///< 0: no answer; below 200: not the final one
};
/// What it says of the call.
enum class CallMeaning {
  kDone,
  kUnreachable,  ///< not done, because no connection could be made
  kNotSent,      ///< not done, and may be done later
  kNoAnswer,     ///< it may have been done: the answer, or what is to be kept of it, is not there
  kOutage,       ///< not done, because the endpoint cannot be used now, as its status shows
  kNotDone,      ///< and may be done later: the answer says so
  kUnknown,      ///< it may have been done: the answer says so
  kPermanent,    ///< not done, and no attempt can help
};
/// The first set that names the status counts, else the first that has its class; what is in none
/// is permanent. Of an answer that was cut off the status says as much as of a whole one; only what
/// is to be kept has to be there.
[[nodiscard]] CallMeaning meaning_of(const Exchange& exchange, const StatusSets& sets);

}  // namespace pawl::handlers
