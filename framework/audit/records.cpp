#include "audit/records.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <utility>

#include "config/invocation.hpp"
#include "engine/message_key.hpp"
#include "message/idempotency_key.hpp"

namespace pawl::engine {
namespace {

constexpr std::size_t kBatch = 1000;
constexpr int kPage = 10000;

// Instead of a fingerprint.
constexpr std::uint32_t kNoRecord = 0;
constexpr std::uint32_t kNoKey = 1;

std::uint32_t fingerprint(ledger::ScopeId scope, const std::string& key) {
  const auto hash = std::hash<std::string>{}(key) + static_cast<std::size_t>(scope);
  return std::max(static_cast<std::uint32_t>(hash), kNoKey + 1);
}

}  // namespace

AuditRecords::AuditRecords(AuditContext& context, ledger::BookRow row, ledger::OffsetRange range,
                           std::vector<ledger::StepBack> steps_back, std::string topic_id)
    : context_(context),
      row_(std::move(row)),
      range_(std::move(range)),
      steps_back_(std::move(steps_back)),
      topic_id_(std::move(topic_id)),
      recorded_upto_(range_.after) {
  const auto offsets = std::clamp<std::int64_t>(range_.upto - range_.after, 0, kAuditWindow);
  owners_.resize(static_cast<std::size_t>(offsets), kNoRecord);
}

const std::string* AuditRecords::remember_scope(const std::string& name) {
  return &scope_names_.try_emplace(name, name).first->second;
}

AuditRecords::Pending AuditRecords::study(const Message& message) {
  Pending pending;
  pending.offset = message.offset();
  pending.timestamp = message.timestamp();
  try {
    message::JsonView json(json_, message);
    pending.binding = context_.router.route(message, json);
    if (pending.binding == nullptr) {
      pending.kind = Kind::kMustBeRecorded;
      pending.text = "no handler's `when` matches it";
      return pending;
    }
    auto key = derive_key(*pending.binding, message, json);
    if (auto* found = std::get_if<Key>(&key)) {
      pending.text = std::move(found->text);
      pending.payload_hash = message::payload_hash(message);
      pending.scope = remember_scope(scope_name(context_.options.kafka, pending.binding->scope,
                                                message.topic(), scope_buffer_));
      return pending;
    }
    pending.kind = pending.binding->missing_key == MissingKey::kProcess ? Kind::kUnchecked
                                                                        : Kind::kMustBeRecorded;
    pending.text = fmt::format("it has no idempotency key ({})", std::get<NoKey>(key).why);
  } catch (const std::exception& error) {
    pending.kind = Kind::kMustBeRecorded;
    pending.text = fmt::format("no key can be derived from it ({})", error.what());
  }
  return pending;
}

void AuditRecords::look_at(const kafka::Record& record) {
  batch_.push_back(study(record.view(range_.partition.topic, topic_id_)));
  ++tally_.records;
  if (batch_.size() >= kBatch)
    settle();
}

void AuditRecords::finish() {
  settle();
  close_window();
}

void AuditRecords::settle() {
  if (batch_.empty())
    return;
  pruned_is_fresh_ = false;
  // What was set aside is read before the keys: a replay in between leaves a key, never a gap.
  for (auto& record : batch_)
    record.aside = set_aside_at(record.offset);
  const auto found = look_up();
  for (const auto& record : batch_) {
    const ledger::BookKey* key = nullptr;
    if (const auto keys = found.find(record.scope); keys != found.end()) {
      if (const auto stored = keys->second.find(record.text); stored != keys->second.end())
        key = &stored->second;
    }
    judge(record, key);
  }
  batch_.clear();
}

AuditRecords::Found AuditRecords::look_up() const {
  std::map<const std::string*, std::vector<std::string>> wanted;
  for (const auto& record : batch_) {
    if (record.kind == Kind::kKeyed)
      wanted[record.scope].push_back(record.text);
  }
  Found found;
  for (const auto& [name, keys] : wanted) {
    const auto scope = context_.pruned.scopes.find(*name);
    if (scope != context_.pruned.scopes.end())
      found[name] = context_.view.find(scope->second.id, keys, row_.since);
  }
  return found;
}

void AuditRecords::judge(const Pending& record, const ledger::BookKey* key) {
  const auto& aside = record.aside;
  const bool here = key != nullptr && key->ours && key->source == range_.partition &&
                    key->offset == record.offset;
  mark(record, here, here && key->recent);
  const bool same_payload = here && key->payload_hash == record.payload_hash;
  if (here && (same_payload || key->recent)) {
    if (aside) {
      ++tally_.applied;
      ++tally_.applied_aside;
    } else if (key->recent) {
      ++tally_.applied;
      ++tally_.applied_since;
    } else {
      // Behind an operator's position; of a topic made anew it may also be the old one's message.
      ++tally_.duplicates;
      ++tally_.came_again;
    }
    if (!same_payload) {
      report(
          audit_kind::kPayload, record,
          "its key is stored with the hash of another payload than Kafka has",
          "compare the effects with the record; the row of pawl.idempotency_keys was changed, or "
          "another program wrote it");
    }
    return;
  }
  if (aside && (aside->dead || aside->parked || aside->skipped)) {
    ++(aside->skipped ? tally_.skipped : aside->parked ? tally_.parked : tally_.dead);
    return;
  }
  switch (record.kind) {
    case Kind::kUnchecked:
      ++tally_.unchecked;
      return;
    case Kind::kMustBeRecorded:
      if (aside) {
        ++tally_.dead;
        return;
      }
      if (too_old(record)) {
        ++tally_.too_old;
        return;
      }
      return report(audit_kind::kMissingRecord, record,
                    record.text + ", and it is neither a dead letter nor recorded as skipped",
                    deliver_again(record.offset));
    case Kind::kKeyed:
      break;
  }
  if (key != nullptr)
    return judge_elsewhere(record, *key);
  if (too_old(record)) {
    ++tally_.too_old;
    return;
  }
  report(audit_kind::kMissingKey, record,
         aside ? "it was a dead letter and replayed, but its key is not stored"
               : "its key is not stored, and it is neither a dead letter nor recorded as skipped",
         deliver_again(record.offset));
}

void AuditRecords::judge_elsewhere(const Pending& record, const ledger::BookKey& key) {
  // What is still recorded of it is its replay, which may come at any time.
  const bool replayed = record.aside.has_value();
  const bool later = key.ours && key.source == range_.partition && key.offset > record.offset;
  const bool conflict = key.payload_hash != record.payload_hash &&
                        record.binding->conflict == Conflict::kFail && !replayed;
  if (!conflict && (!later || replayed || delivered_again(record.offset, key.offset))) {
    ++tally_.duplicates;
    return;
  }
  if (too_old(record)) {
    ++tally_.too_old;
    return;
  }
  const auto first =
      key.source.topic.empty()
          ? std::string("at a topic that pawl.consumer_topics does not contain")
          : fmt::format("at {}[{}]@{}", key.source.topic, key.source.partition, key.offset);
  if (later) {
    report(
        audit_kind::kPosition, record,
        fmt::format("its key is stored as first seen later, {}", first),
        "the row of pawl.idempotency_keys was changed, or this message was applied out of order; "
        "check its effects");
  } else {
    report(audit_kind::kConflict, record,
           fmt::format("its key is stored with another payload, first seen {}, and this message is "
                       "not recorded",
                       first),
           "check whether its effects exist; a key that names an entity instead of an event loses "
           "messages (idempotency.key)");
  }
}

/// Reads pages of offsets, because for a page of rows the server would sort all rows that follow.
std::optional<ledger::SetAside> AuditRecords::set_aside_at(std::int64_t offset) {
  if (offset > recorded_upto_) {
    auto page = range_;
    page.after = offset - 1;
    page.upto = std::min(range_.upto, page.after + kPage);
    recorded_ = context_.view.set_aside(page, row_.base, row_.since);
    next_recorded_ = 0;
    recorded_upto_ = page.upto;
  }
  while (next_recorded_ < recorded_.size() && recorded_[next_recorded_].offset < offset)
    ++next_recorded_;
  if (next_recorded_ == recorded_.size() || recorded_[next_recorded_].offset != offset)
    return std::nullopt;
  return recorded_[next_recorded_];
}

/// Whether an operator's step back let a record come again behind one with a higher offset.
bool AuditRecords::delivered_again(std::int64_t offset, std::int64_t later) const {
  return std::any_of(steps_back_.begin(), steps_back_.end(),
                     [&](const auto& step) { return step.from > later && step.to <= offset; });
}

/// Retention goes on meanwhile: what it says is read again behind the look-up that found nothing.
const ledger::Pruned& AuditRecords::what_is_pruned() {
  if (!pruned_is_fresh_) {
    context_.pruned = context_.view.pruned();
    pruned_is_fresh_ = true;
  }
  return context_.pruned;
}

/// Whether retention may have removed the message's key, or the record of its being set aside.
bool AuditRecords::too_old(const Pending& record) {
  const auto& pruned = what_is_pruned();
  if (pruned.records_to && record.timestamp < *pruned.records_to)
    return true;
  if (record.kind != Kind::kKeyed)
    return false;
  const auto scope = pruned.scopes.find(*record.scope);
  return scope != pruned.scopes.end() && scope->second.pruned_to &&
         record.timestamp < *scope->second.pruned_to;
}

void AuditRecords::mark(const Pending& record, bool own, bool recent) {
  const auto place = record.offset - range_.after - 1;
  if (place / kAuditWindow != window_) {
    close_window();
    window_ = place / kAuditWindow;
  }
  owners_[static_cast<std::size_t>(place % kAuditWindow)] =
      own ? fingerprint(context_.pruned.scopes.at(*record.scope).id, record.text) : kNoKey;
  if (recent)
    ++matched_;
}

/// Each record's own key was found by its name. If more keys than these name offsets of the window,
/// some of them name a record that has another key, or one that Kafka no longer has.
void AuditRecords::close_window() {
  if (window_ < 0)
    return;
  const auto counted = context_.key_counts.find({range_.partition, window_});
  if (counted != context_.key_counts.end() && counted->second > matched_) {
    auto window = range_;
    window.after = range_.after + window_ * kAuditWindow;
    window.upto = std::min(range_.upto, window.after + kAuditWindow);
    find_misplaced(window);
  }
  std::fill(owners_.begin(), owners_.end(), kNoRecord);
  matched_ = 0;
  window_ = -1;
}

void AuditRecords::find_misplaced(const ledger::OffsetRange& window) {
  std::optional<ledger::NamedKey> last;
  while (true) {
    const auto page = context_.view.keys_in(window, row_.since, last ? &*last : nullptr, kPage);
    for (const auto& key : page) {
      const auto owner = owners_[static_cast<std::size_t>(key.offset - window.after - 1)];
      if (owner == kNoRecord || owner == fingerprint(key.scope, key.key))
        continue;
      // A dead letter may have been replayed since its record was looked at, also one of another
      // message that had the offset before.
      const auto replay = context_.view.set_aside({range_.partition, key.offset - 1, key.offset},
                                                  row_.base, "-infinity");
      if (!replay.empty() && replay.front().replayed)
        continue;
      context_.findings.add({audit_kind::kPosition, range_.partition, key.offset, key.key,
                             "the key is stored as first seen here, but the record here has "
                             "another one, or none",
                             "the row of pawl.idempotency_keys was changed, or another program "
                             "wrote it; its message may be anywhere"});
    }
    if (page.size() < static_cast<std::size_t>(kPage))
      return;
    last = page.back();
  }
}

void AuditRecords::report(const char* kind, const Pending& record, std::string text,
                          std::string remedy) {
  context_.findings.add({kind, range_.partition, record.offset,
                         record.kind == Kind::kKeyed ? record.text : std::string(), std::move(text),
                         std::move(remedy)});
}

std::string AuditRecords::deliver_again(std::int64_t offset) const {
  return fmt::format(
      "check whether its effects exist; if not, `{} {} --to {}` delivers it again, and later "
      "messages as duplicates",
      command_text(context_.options.invocation, "offsets set"), partition_words(range_.partition),
      offset);
}

}  // namespace pawl::engine
