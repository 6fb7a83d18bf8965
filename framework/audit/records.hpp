#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "audit/findings.hpp"
#include "audit/store/view.hpp"
#include "handlers/router.hpp"
#include "kafka/record.hpp"
#include "message/json.hpp"
#include "pawl/options.hpp"

namespace pawl::engine {

/// Keys are counted by windows of so many offsets, so that an audit remembers a bounded number of
/// them: four bytes each.
inline constexpr std::int64_t kAuditWindow = std::int64_t{1} << 22U;

/// How the records of one partition were found to have ended.
struct AuditTally {
  std::int64_t records = 0;
  std::int64_t applied = 0;  ///< their key is there, first seen here
  /// Their key is there, first seen elsewhere, or here before the counters began.
  std::int64_t duplicates = 0;
  std::int64_t came_again = 0;  ///< of the duplicates, the latter
  std::int64_t dead = 0;
  std::int64_t parked = 0;
  std::int64_t skipped = 0;
  std::int64_t unchecked = 0;  ///< without a key, and configured so
  std::int64_t too_old = 0;    ///< their key may have been removed by retention
  /// Applied since an operator last moved the position, and nothing else recorded of them.
  std::int64_t applied_since = 0;
  std::int64_t applied_aside = 0;  ///< applied, and also set aside once
};

/// What all partitions of an audit share.
struct AuditContext {
  const Options& options;
  const handlers::Router& router;
  const ledger::AuditView& view;
  ledger::Pruned pruned;
  ledger::KeyCounts key_counts;
  AuditFindings& findings;
};

/// Holds the records of one partition, in the order of their offsets, against the books: each one's
/// key, or what is recorded instead, and whether the keys that name its offset are its own. Looks
/// keys up a thousand at a time; its memory does not grow with the log.
class AuditRecords {
 public:
  AuditRecords(AuditContext& context, ledger::BookRow row, ledger::OffsetRange range,
               std::vector<ledger::StepBack> steps_back, std::string topic_id);

  void look_at(const kafka::Record& record);
  /// Behind the last record.
  void finish();

  [[nodiscard]] const AuditTally& tally() const { return tally_; }

 private:
  enum class Kind { kKeyed, kUnchecked, kMustBeRecorded };

  /// What is remembered of a record until its batch is looked up.
  struct Pending {
    std::int64_t offset = -1;
    std::optional<Timestamp> timestamp;
    Kind kind = Kind::kKeyed;
    std::string text;  ///< the key, or why there is none
    std::int64_t payload_hash = 0;
    const handlers::Binding* binding = nullptr;
    const std::string* scope = nullptr;  ///< its name, in scope_names_
    std::optional<ledger::SetAside> aside;
  };
  using Found = std::map<const std::string*, std::map<std::string, ledger::BookKey>>;

  [[nodiscard]] Pending study(const Message& message);
  [[nodiscard]] const std::string* remember_scope(const std::string& name);
  void settle();
  [[nodiscard]] Found look_up() const;
  void judge(const Pending& record, const ledger::BookKey* key);
  void judge_elsewhere(const Pending& record, const ledger::BookKey& key);
  [[nodiscard]] std::optional<ledger::SetAside> set_aside_at(std::int64_t offset);
  [[nodiscard]] bool too_old(const Pending& record);
  const ledger::Pruned& what_is_pruned();
  [[nodiscard]] bool delivered_again(std::int64_t offset, std::int64_t later) const;
  void mark(const Pending& record, bool own, bool recent);
  void close_window();
  void find_misplaced(const ledger::OffsetRange& window);
  void report(const char* kind, const Pending& record, std::string text, std::string remedy);
  [[nodiscard]] std::string deliver_again(std::int64_t offset) const;

  AuditContext& context_;
  ledger::BookRow row_;
  ledger::OffsetRange range_;
  std::vector<ledger::StepBack> steps_back_;
  std::string topic_id_;
  AuditTally tally_;

  message::JsonReader json_;
  std::string scope_buffer_;
  std::map<std::string, std::string, std::less<>> scope_names_;
  std::vector<Pending> batch_;
  bool pruned_is_fresh_ = false;

  std::vector<ledger::SetAside> recorded_;  ///< of one page of offsets
  std::size_t next_recorded_ = 0;
  std::int64_t recorded_upto_;

  // Of the window in hand, by offset: the fingerprint of the key that rightly names it.
  std::int64_t window_ = -1;
  std::vector<std::uint32_t> owners_;
  std::int64_t matched_ = 0;
};

}  // namespace pawl::engine
