#include "engine/batch_processor.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "engine/handler_call.hpp"
#include "engine/message_key.hpp"
#include "message/idempotency_key.hpp"
#include "message/traceparent.hpp"

namespace pawl::engine {

Event BatchProcessor::event_of_entry(Step what, std::size_t index) const {
  auto event = event_of(what, messages_[index]);
  event.key = entries_[index].key;
  event.handler = binding_->label;
  return event;
}

/// The batch's last message stands for all.
void BatchProcessor::emit_step(Step what) const {
  if (context_.observers.every_step())
    context_.observers.emit(event_of_entry(what, messages_.size() - 1));
}

void BatchProcessor::clear() {
  binding_ = nullptr;
  messages_.clear();
  entries_.clear();
  for (auto& column : columns_)
    column.clear();
}

bool BatchProcessor::add(const Message& message, std::chrono::steady_clock::time_point taken_at) {
  try {
    if (!study(message))
      return false;
    studied_.taken_at = taken_at;
    messages_.push_back(message);
    entries_.push_back(std::move(studied_));
    return true;
  } catch (...) {  // code's may be anything
    // It is said when that message is in hand alone.
    for (auto& column : columns_)
      column.truncate(messages_.size());
    return false;
  }
}

bool BatchProcessor::study(const Message& message) {
  message::JsonView json(reader_, message);
  const auto* binding = context_.router.route(message, json);
  if (binding == nullptr || binding->batch == nullptr ||
      (!messages_.empty() && binding != binding_))
    return false;
  studied_ = {};
  auto key = derive_key(*binding, message, json);
  if (auto* const found = std::get_if<Key>(&key)) {
    studied_.key = std::move(found->text);
    studied_.payload_hash = message::payload_hash(message);
    studied_.fate = Fate::kDuplicate;  // unless it is claimed
  } else if (binding->missing_key != MissingKey::kProcess) {
    return false;
  }
  binding_ = binding;
  binding->batch->collect(message, json, columns_);
  return true;
}

std::vector<std::int64_t> BatchProcessor::process(postgres::Session& session, BatchStep step,
                                                  Subject& subject) {
  subject = {};
  subject.binding = binding_;
  timing_ = {};
  emit_step(Step::kMessageFetched);
  if (auto conflicts = sort_keys(); !conflicts.empty())
    return conflicts;
  if (!by_key_.empty())
    scope_ = &scopes_.find(session, *binding_, messages_.front().topic(), step.source);

  postgres::Frame frame(session, binding_->frame);
  step.advance.transaction = claim(frame, step);
  emit_step(Step::kKeyClaimed);
  if (auto conflicts = look_up_duplicates(frame); !conflicts.empty())
    return conflicts;
  apply(session, frame, subject);
  emit_step(Step::kHandlerReturned);
  finish(frame, step);
  return {};
}

/// Returns the offsets of messages that conflict with an earlier one of the batch.
std::vector<std::int64_t> BatchProcessor::sort_keys() {
  by_key_.clear();
  repeated_.clear();
  keys_.clear();
  for (std::uint32_t i = 0; i < entries_.size(); ++i) {
    if (entries_[i].fate != Fate::kUnchecked)
      by_key_.push_back(i);
  }
  std::sort(by_key_.begin(), by_key_.end(), [this](std::uint32_t one, std::uint32_t other) {
    const auto order = entries_[one].key.compare(entries_[other].key);
    return order < 0 || (order == 0 && one < other);
  });
  std::vector<std::int64_t> conflicts;
  std::size_t kept = 0;
  for (const auto index : by_key_) {
    const auto* first = kept == 0 ? nullptr : &entries_[by_key_[kept - 1]];
    if (first == nullptr || first->key != entries_[index].key) {
      by_key_[kept++] = index;
      keys_.add(entries_[index].key, entries_[index].payload_hash, messages_[index].offset());
      continue;
    }
    repeated_.push_back(index);
    if (binding_->conflicts(entries_[index].payload_hash, first->payload_hash))
      conflicts.push_back(messages_[index].offset());
  }
  by_key_.resize(kept);
  return conflicts;
}

/// BEGIN and the claim in one flight. Returns the transaction's id.
std::string BatchProcessor::claim(postgres::Frame& frame, const BatchStep& step) {
  if (by_key_.empty()) {
    context_.keys.name_transaction(request_);
    const auto answer = frame.begin(request_);
    return ledger::IdempotencyKeys::claimed_by(answer.get()).value_or("");
  }
  context_.batch_keys.claim(request_, *scope_, step.source, step.partition.partition, keys_);
  const auto answer = frame.begin(request_);
  auto claimed = ledger::BatchKeys::claimed(answer.get());
  for (const auto offset : claimed.offsets) {
    const auto found = std::lower_bound(
        messages_.begin(), messages_.end(), offset,
        [](const Message& message, std::int64_t wanted) { return message.offset() < wanted; });
    entries_[static_cast<std::size_t>(found - messages_.begin())].fate = Fate::kClaimed;
  }
  if (!claimed.transaction.empty())
    return std::move(claimed.transaction);
  // The advance must name its transaction all the same.
  context_.keys.name_transaction(request_);
  const auto named = frame.exec(request_);
  return ledger::IdempotencyKeys::claimed_by(named.get()).value_or("");
}

/// Returns the offsets of messages whose key was stored before with another payload.
std::vector<std::int64_t> BatchProcessor::look_up_duplicates(postgres::Frame& frame) {
  renewed_.clear();
  postgres::ArrayElements keys;
  std::vector<std::uint32_t> asked;
  for (const auto index : by_key_) {
    if (entries_[index].fate == Fate::kDuplicate) {
      keys.add_text(entries_[index].key);
      asked.push_back(index);
    }
  }
  if (asked.empty())
    return {};
  context_.batch_keys.look_up(request_, *scope_, keys, binding_->on_duplicate != nullptr);
  const auto answer = frame.exec(request_);
  auto found = ledger::BatchKeys::found(answer.get());
  if (found.size() != asked.size()) {
    throw postgres::Error(std::string(postgres::kKeyVanishedState),
                          "an idempotency key was removed while it was read");
  }
  // Of all messages, for a key may be repeated in the batch; one that is renewed too early is only
  // kept a little longer.
  std::optional<Timestamp> latest;
  for (const auto& message : messages_)
    latest = std::max(latest, message.timestamp());
  std::vector<std::int64_t> conflicts;
  for (auto& key : found) {
    const auto index = asked.at(key.place);
    entries_[index].response = std::move(key.response);
    if (ledger::renews(latest, key.created))
      renewed_.add_text(entries_[index].key);
    if (binding_->conflicts(entries_[index].payload_hash, key.payload_hash))
      conflicts.push_back(messages_[index].offset());
  }
  for (const auto index : repeated_) {
    // It has the first one's key, and so what was stored under it.
    const auto first = std::find_if(asked.begin(), asked.end(), [&](std::uint32_t other) {
      return entries_[other].key == entries_[index].key;
    });
    if (first != asked.end())
      entries_[index].response = entries_[*first].response;
  }
  return conflicts;
}

void BatchProcessor::apply(postgres::Session& session, postgres::Frame& frame, Subject& subject) {
  applied_.clear();
  for (std::uint32_t i = 0; i < entries_.size(); ++i) {
    if (entries_[i].fate != Fate::kDuplicate)
      applied_.push_back(i);
  }
  if (applied_.empty())
    return;
  std::span<const Message> messages = messages_;
  if (applied_.size() < messages_.size()) {
    applied_messages_.clear();
    for (const auto index : applied_)
      applied_messages_.push_back(messages_[index]);
    messages = applied_messages_;
  }
  std::optional<handlers::BatchClaim> claim;
  if (binding_->batch->stores_responses())
    claim = claim_of_applied();
  subject.handler_begun = true;
  std::vector<Response> responses;
  Stopwatch watch(context_.observers.times());
  call_handler(session, [&]() -> Response {
    responses = binding_->batch->apply_batch(
        frame, {messages, columns_, applied_, claim ? &*claim : nullptr});
    return std::nullopt;
  });
  watch.stop();
  timing_.handler = watch.read();
  store(frame, responses);
}

handlers::BatchClaim BatchProcessor::claim_of_applied() const {
  postgres::ArrayElements keys;
  for (const auto index : applied_) {
    if (entries_[index].fate == Fate::kClaimed) {
      keys.add_text(entries_[index].key);
    } else {
      keys.add_null();
    }
  }
  return {static_cast<std::int32_t>(scope_->id), keys.array()};
}

/// What code answered, for those that have a key to store it with.
void BatchProcessor::store(postgres::Frame& frame, const std::vector<Response>& responses) {
  ledger::KeyResponses stored;
  for (std::size_t i = 0; i < responses.size(); ++i) {
    const auto& entry = entries_[applied_[i]];
    if (entry.fate != Fate::kClaimed || !responses[i])
      continue;
    require_fits(*binding_, responses[i]);
    stored.add(entry.key, *responses[i]);
  }
  if (stored.size() > 0)
    frame.defer_own(context_.batch_keys.store_responses(scope_->id, stored));
}

ledger::BatchCounts BatchProcessor::count() const {
  ledger::BatchCounts counts;
  for (const auto& entry : entries_) {
    ++(entry.fate == Fate::kDuplicate ? counts.duplicates : counts.applied);
    counts.unchecked += entry.fate == Fate::kUnchecked ? 1 : 0;
  }
  return counts;
}

/// Advance and COMMIT in one flight, with what the handler deferred.
void BatchProcessor::finish(postgres::Frame& frame, const BatchStep& step) {
  if (renewed_.size() > 0) {
    postgres::Request renewal;
    context_.keys.renew(renewal, scope_->id, renewed_);
    frame.defer_own(std::move(renewal));
  }
  step.offsets.advance_batch(request_, step.partition, step.advance, count());
  postgres::FinishHooks hooks;
  if (context_.observers.every_step()) {
    hooks.before_commit = [&] { emit_step(Step::kOffsetAdvancing); };
    hooks.commit_sent = [&] { emit_step(Step::kCommitSent); };
  }
  Stopwatch watch(context_.observers.times());
  frame.finish(request_, hooks);
  watch.stop();
  timing_.commit = watch.read();
  tell(watch);
}

/// Says of each message how it ended.
void BatchProcessor::tell(const Stopwatch& watch) {
  const auto last = entries_.size() - 1;
  Timing timing;
  timing.grouping = Grouping::kBatch;
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    const bool duplicate = entries_[i].fate == Fate::kDuplicate;
    auto event =
        event_of_entry(duplicate ? Step::kMessageDeduplicated : Step::kMessageCommitted, i);
    event.unchecked = entries_[i].fate == Fate::kUnchecked;
    event.traceparent = message::traceparent_of(messages_[i]);
    if (context_.observers.times()) {
      timing.since_fetched = watch.since(entries_[i].taken_at);
      if (i == last) {
        timing.handler = timing_.handler;
        timing.commit = timing_.commit;
        timing.messages = entries_.size();
      }
      event.timing = &timing;
    }
    context_.observers.emit(event);
    if (duplicate)
      tell_duplicate(context_.observers, *binding_, messages_[i], entries_[i].response);
  }
}

}  // namespace pawl::engine
