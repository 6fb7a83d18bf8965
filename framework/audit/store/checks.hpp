#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "audit/store/view.hpp"

namespace pawl::ledger {

/// Which partitions an audit is about.
struct AuditFilter {
  std::vector<std::string> topics;
  std::optional<std::int32_t> partition;
};

/// A row that does not agree with the others.
struct Stray {
  std::string what;  ///< "key", "dead letter", "skipped message"
  TopicPartition partition;
  std::int64_t offset = -1;
  std::string name;  ///< the key, or the row's number
};

/// The first ones, and how many there are.
struct Strays {
  std::vector<Stray> rows;
  std::int64_t total = 0;
};

/// Under which scope the keys of a topic's handler stand.
struct HandlerScope {
  std::string topic;
  std::string handler;  ///< its label
  AuditScope scope;
};

/// Rows that are there, of the offsets of one range.
struct RecordedCounts {
  std::int64_t letters = 0;  ///< offsets with a dead letter of any status
  std::int64_t skips = 0;
};

/// What can be checked in the database alone. Each answer is of one moment, so a running consumer
/// cannot make the rows disagree: it commits key, record and offset together.
class AuditChecks {
 public:
  /// `session` outlives it.
  AuditChecks(postgres::Session& session, std::string schema, ConsumerId consumer,
              AuditFilter filter)
      : session_(session),
        schema_(std::move(schema)),
        consumer_(consumer),
        filter_(std::move(filter)) {}

  /// Keys, dead letters and skipped messages behind the last offset that was ever stored.
  [[nodiscard]] Strays beyond_offsets(std::int64_t limit) const;
  /// Parked messages whose record key is not parked: later ones would overtake them.
  [[nodiscard]] Strays parked_without_head(std::int64_t limit) const;
  /// Dead letters that wait for their turn although they are the first of their record key.
  [[nodiscard]] Strays waiting_for_nothing(std::int64_t limit) const;
  /// Dead letters outside of `read` that were replayed, and whose key is not there.
  [[nodiscard]] Strays replayed_without_key(const std::vector<HandlerScope>& scopes,
                                            const std::vector<OffsetRange>& read,
                                            std::int64_t limit) const;
  /// `since`: of each range, as in BookRow; what is older is not of this counting.
  [[nodiscard]] std::map<TopicPartition, RecordedCounts> recorded(
      const std::vector<OffsetRange>& ranges, const std::vector<std::string>& since) const;

 private:
  [[nodiscard]] postgres::Parameters filter_parameters(std::int64_t limit) const;
  [[nodiscard]] Strays ask(const std::string& sql, postgres::Parameters parameters) const;

  postgres::Session& session_;
  std::string schema_;
  ConsumerId consumer_;
  AuditFilter filter_;
};

}  // namespace pawl::ledger
