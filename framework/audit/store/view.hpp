#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "ledger/instant.hpp"
#include "ledger/types.hpp"
#include "postgres/session.hpp"

namespace pawl::ledger {

/// A row of the register as an audit looks at it: one moment, of all its columns.
struct BookRow {
  TopicPartition partition;
  std::int64_t stored = -1;  ///< last_processed_offset
  std::int64_t base = -1;    ///< the counters count what lies behind it
  std::string topic_id;      ///< empty when unknown
  std::int64_t applied = 0;
  std::int64_t duplicates = 0;
  std::int64_t skipped = 0;
  std::int64_t unchecked = 0;  ///< counted as applied as well
  std::int64_t dead = 0;
  std::int64_t parked = 0;
  /// When an operator last moved the position, as PostgreSQL's text; keys and letters that are
  /// older may name offsets of another topic that had this name.
  std::string since;
  std::optional<std::int64_t> leader_epoch;  ///< KIP-320: of the record at `stored`, if known

  /// How many messages the counters know.
  [[nodiscard]] std::int64_t counted() const {
    return applied + duplicates + skipped + dead + parked;
  }
};

/// An operator's change that set a position back.
struct StepBack {
  std::int64_t from = 0;  ///< the next offset before it
  std::int64_t to = 0;    ///< and after it
};

/// Offsets of one partition: `after` < offset <= `upto`.
struct OffsetRange {
  TopicPartition partition;
  std::int64_t after = -1;
  std::int64_t upto = -1;
};

struct AuditScope {
  ScopeId id{};
  /// Keys of messages that are older may have been removed; the broker's time.
  std::optional<Instant> pruned_to;

  friend bool operator==(const AuditScope&, const AuditScope&) = default;
};

/// What retention may have removed.
struct Pruned {
  std::map<std::string, AuditScope> scopes;
  /// Records of messages that were set aside before, and are resolved, may be gone.
  std::optional<Instant> records_to;

  friend bool operator==(const Pruned&, const Pruned&) = default;
};

/// A key as it is stored.
struct BookKey {
  std::int64_t payload_hash = 0;
  bool ours = false;      ///< claimed by this consumer
  TopicPartition source;  ///< where it was first seen; empty topic: unknown
  std::int64_t offset = -1;
  bool recent = false;  ///< since BookRow::since
};

/// What is recorded of one offset beside keys.
struct SetAside {
  std::int64_t offset = -1;
  bool dead = false;  ///< dead or discarded
  bool parked = false;
  bool skipped = false;
  bool replayed = false;
};

/// A key by its name and the offset that it names.
struct NamedKey {
  ScopeId scope{};
  std::string key;
  std::int64_t offset = -1;
};

/// How many keys name offsets of one window of a range.
using KeyCounts = std::map<std::pair<TopicPartition, std::int64_t>, std::int64_t>;

/// Reads one consumer's books for an audit. Changes nothing, and holds no snapshot longer than one
/// statement: an old one would slow the running consumer. A role that may only read suffices.
class AuditView {
 public:
  /// `session` outlives it.
  AuditView(postgres::Session& session, std::string schema, ConsumerId consumer);

  /// By topic and partition.
  [[nodiscard]] std::vector<BookRow> rows() const;
  [[nodiscard]] std::map<TopicPartition, std::vector<StepBack>> steps_back() const;
  [[nodiscard]] Pruned pruned() const;

  /// By key; absent is what is not stored.
  [[nodiscard]] std::map<std::string, BookKey> find(ScopeId scope,
                                                    std::span<const std::string> keys,
                                                    const std::string& since) const;

  /// In the order of offsets. Of offsets behind `base` only what was recorded `since` (as in
  /// BookRow).
  [[nodiscard]] std::vector<SetAside> set_aside(const OffsetRange& range, std::int64_t base,
                                                const std::string& since) const;

  /// Keys of this consumer that name offsets of the ranges, by windows of `window` offsets from the
  /// beginning of each. One pass over all keys.
  [[nodiscard]] KeyCounts count_keys(const std::vector<OffsetRange>& ranges,
                                     const std::vector<std::string>& since,
                                     std::int64_t window) const;
  /// Those of one range, page by page: behind `after` if given, up to `limit`.
  [[nodiscard]] std::vector<NamedKey> keys_in(const OffsetRange& range, const std::string& since,
                                              const NamedKey* after, int limit) const;

 private:
  [[nodiscard]] postgres::Parameters consumer_parameter() const;

  postgres::Session& session_;
  std::string schema_;
  ConsumerId consumer_;
  postgres::Statement find_;
  postgres::Statement set_aside_;
};

}  // namespace pawl::ledger
