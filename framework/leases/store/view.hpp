#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "ledger/instant.hpp"
#include "ledger/types.hpp"
#include "pawl/response.hpp"
#include "postgres/session.hpp"

namespace pawl::ledger {

/// How the last attempt for a key stands.
enum class LeaseState {
  kInHand,   ///< it is being called, or the outcome recorded
  kDone,     ///< nobody has it: its response is to be recorded by the next attempt
  kUnknown,  ///< nobody has it, and whether an attempt did anything is unknown
  kWaits,    ///< nobody has it, and nothing was done
};

/// in-flight, done, unknown, waiting.
[[nodiscard]] const char* to_string(LeaseState state);

/// A row of pawl.leases, as an operator sees it.
struct LeaseRow {
  std::string scope;
  std::string key;
  LeaseState state{};
  std::string owner;  ///< empty: it was given back
  std::optional<Instant> until;
  std::uint32_t attempts = 0;
  Instant begun;  ///< of the last lease, for an attempt or for a question about one
  /// Since when it is unknown whether an attempt did anything; also of one that has expired.
  std::optional<Instant> unknown_since;
  bool done = false;  ///< and its response is to be recorded
  Response response;
  std::string resolved_by;
  std::string topic;
  std::int32_t partition = 0;
  std::int64_t offset = 0;
  /// Of the message, unresolved: the next attempt is its replay.
  std::optional<std::int64_t> dead_letter;
};

/// A row of pawl.lease_losses.
struct LeaseLoss {
  std::int64_t id = 0;
  std::string scope;
  std::string key;
  std::string owner;
  std::uint32_t attempt = 0;
  bool returned = false;
  Instant at;
  std::string topic;
  std::int32_t partition = 0;
  std::int64_t offset = 0;
};

/// Of the consumer, by LeaseState.
struct LeaseCounts {
  std::int64_t in_hand = 0;
  std::int64_t done = 0;
  std::int64_t unknown = 0;
  std::int64_t losses = 0;  ///< calls that lost their lease
};

struct LeaseFilter {
  std::string key;    ///< empty: any
  std::string scope;  ///< empty: those of the consumer
  bool unknown = false;
};

/// What operators see and say of pawl.leases. Throws postgres::Error.
class LeaseView {
 public:
  LeaseView(const std::string& schema, ConsumerId consumer);

  /// By scope and key.
  [[nodiscard]] std::vector<LeaseRow> list(postgres::Session& session, const LeaseFilter& filter,
                                           std::int64_t limit) const;
  [[nodiscard]] LeaseCounts count(postgres::Session& session) const;
  /// Newest first.
  [[nodiscard]] std::vector<LeaseLoss> losses(postgres::Session& session, const LeaseFilter& filter,
                                              std::int64_t limit) const;
  /// Forgets losses that somebody has looked at, those with these ids or all of the consumer. How
  /// many there were.
  [[nodiscard]] std::int64_t acknowledge(postgres::Session& session,
                                         const std::vector<std::int64_t>& ids, bool all) const;
  /// Says of an unknown attempt that it was done, with this response, or that it was not (nullopt).
  /// Throws FatalError with what to do where there is nothing to be said.
  void resolve(postgres::Session& session, const LeaseRow& lease, bool done,
               const Response& response) const;

 private:
  ConsumerId consumer_;
  postgres::Statement list_;
  postgres::Statement count_;
  postgres::Statement losses_;
  postgres::Statement acknowledge_;
  postgres::Statement resolve_;
};

}  // namespace pawl::ledger
