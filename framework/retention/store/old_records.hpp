#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "ledger/instant.hpp"
#include "ledger/types.hpp"
#include "postgres/session.hpp"
#include "postgres/statement.hpp"

namespace pawl::ledger {

/// Records of one kind, which retention removes by their age alone. Any thread.
class OldRecords {
 public:
  /// Dead letters that were resolved.
  [[nodiscard]] static OldRecords letters(const std::string& schema, ConsumerId consumer);
  [[nodiscard]] static OldRecords skipped(const std::string& schema, ConsumerId consumer);
  /// Messages of the outbox that were given up; also those of which other consumers' handlers
  /// published them: the outbox is no consumer's.
  [[nodiscard]] static OldRecords discarded(const std::string& schema);
  /// Calls that lost their lease, of all consumers.
  [[nodiscard]] static OldRecords losses(const std::string& schema);

  /// Removes up to `most` of before, in one transaction whose COMMIT does not wait for the disk.
  /// Throws postgres::Error or postgres::InDoubt; may be repeated.
  [[nodiscard]] std::int64_t remove(postgres::Session& session, Instant before,
                                    std::int64_t most) const;
  /// What would be removed; reads all there is. Throws postgres::Error.
  [[nodiscard]] std::int64_t count(postgres::Session& session, Instant before) const;

 private:
  OldRecords(postgres::Statement remove, postgres::Statement count,
             std::optional<ConsumerId> consumer)
      : remove_(std::move(remove)), count_(std::move(count)), consumer_(consumer) {}

  [[nodiscard]] postgres::Parameters parameters(Instant before) const;

  postgres::Statement remove_;
  postgres::Statement count_;
  std::optional<ConsumerId> consumer_;  ///< whose; nullopt: of the whole database
};

}  // namespace pawl::ledger
