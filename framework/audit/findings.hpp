#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "pawl/topic_partition.hpp"

namespace pawl::engine {

/// What kind of disagreement an audit found: words for scripts (docs/audit.md).
namespace audit_kind {
inline constexpr const char* kMissingKey = "missing-key";
inline constexpr const char* kMissingRecord = "missing-record";
inline constexpr const char* kPayload = "payload";
inline constexpr const char* kConflict = "conflict";
inline constexpr const char* kUnreadable = "unreadable";
inline constexpr const char* kPosition = "position";
inline constexpr const char* kBeyond = "beyond-offset";
inline constexpr const char* kOffset = "offset";
inline constexpr const char* kTopic = "topic";
inline constexpr const char* kCounters = "counters";
inline constexpr const char* kParked = "parked";
inline constexpr const char* kReplayed = "replayed";
inline constexpr const char* kCheck = "check";
/// A check of [audit] that could not run.
inline constexpr const char* kCheckFailed = "check-failed";
}  // namespace audit_kind

/// One thing that does not agree.
struct AuditFinding {
  std::string kind;
  std::optional<TopicPartition> where;  ///< absent: of no partition
  std::optional<std::int64_t> offset;
  std::string key;     ///< idempotency key; empty: none
  std::string text;    ///< what does not agree
  std::string remedy;  ///< what to do
};

/// Collects findings: hands on the first ones, counts all.
class AuditFindings {
 public:
  AuditFindings(std::int64_t most, std::function<void(const AuditFinding&)> sink)
      : most_(most), sink_(std::move(sink)) {}

  void add(const AuditFinding& finding) {
    if (total_ < most_)
      sink_(finding);
    if (finding.kind == audit_kind::kUnreadable || finding.kind == audit_kind::kCheckFailed)
      ++incomplete_;
    count(finding.where, 1);
  }
  /// Findings that are not handed on.
  void count(const std::optional<TopicPartition>& where, std::int64_t findings) {
    total_ += findings;
    if (where)
      of_[*where] += findings;
  }

  [[nodiscard]] std::int64_t total() const { return total_; }
  /// How many of them mean that something could not be verified.
  [[nodiscard]] std::int64_t incomplete() const { return incomplete_; }
  /// How many more are handed on.
  [[nodiscard]] std::int64_t left() const { return total_ < most_ ? most_ - total_ : 0; }
  [[nodiscard]] std::int64_t of(const TopicPartition& partition) const {
    const auto found = of_.find(partition);
    return found == of_.end() ? 0 : found->second;
  }

 private:
  std::int64_t most_;
  std::function<void(const AuditFinding&)> sink_;
  std::int64_t total_ = 0;
  std::int64_t incomplete_ = 0;
  std::map<TopicPartition, std::int64_t> of_;
};

}  // namespace pawl::engine
