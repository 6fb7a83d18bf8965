#include "engine/message_processor.hpp"

#include <fmt/format.h>

#include "engine/failure.hpp"
#include "engine/handler_call.hpp"
#include "handlers/handler_statement.hpp"
#include "message/idempotency_key.hpp"
#include "pawl/errors.hpp"

namespace pawl::engine {

using ledger::Outcome;

namespace {

/// Two views of one record of Kafka's client.
bool same_record(const Message& one, const Message& other) {
  return one.offset() == other.offset() && one.partition() == other.partition() &&
         one.topic() == other.topic() && one.value().data() == other.value().data() &&
         one.headers().data() == other.headers().data();
}

}  // namespace

MessageProcessor::MessageProcessor(const FrameContext& context)
    : context_(context), scopes_(context.options, context.keys) {}

void MessageProcessor::emit(Step what, const InHand& hand, std::string_view detail) const {
  auto event = event_of(what, hand.message);
  event.key = key_;
  event.detail = detail;
  if (binding_ != nullptr)
    event.handler = binding_->label;
  context_.observers.emit(event);
}

void MessageProcessor::emit_step(Step what, const InHand& hand) const {
  if (context_.observers.every_step())
    emit(what, hand);
}

MessageProcessor::InHand& MessageProcessor::look_at(std::size_t slot, const Message& message) {
  return hands_[slot].emplace(message, readers_[slot]);
}

MessageProcessor::InHand& MessageProcessor::take_in_hand(const MessageStep& step) {
  const auto other = 1 - current_;
  if (started_ && hands_[other] && same_record(hands_[other]->message, step.message)) {
    current_ = other;
  } else {
    settle();
    look_at(current_, step.message);
  }
  hands_[current_]->step = &step;
  return *hands_[current_];
}

void MessageProcessor::settle() noexcept {
  started_.reset();
}

void MessageProcessor::study(InHand& hand) const {
  hand.binding = context_.router.route(hand.message, hand.json);
  if (hand.binding != nullptr)
    hand.key = derive_key(*hand.binding, hand.message, hand.json);
  hand.studied = true;
}

Outcome MessageProcessor::process(postgres::Session& session, const MessageStep& step,
                                  std::optional<Upcoming> next) {
  key_.clear();
  binding_ = nullptr;
  in_handler_ = false;
  next_ = next;
  auto& hand = take_in_hand(step);
  emit_step(Step::kFetched, hand);

  try {
    if (!hand.studied)
      study(hand);
  } catch (...) {
    // The key's failure is its handler's: this policy holds.
    binding_ = hand.binding;
    throw;
  }
  binding_ = hand.binding;
  if (hand.binding == nullptr) {
    if (context_.options.consumer.unmatched == Unmatched::kSkip) {
      return skip(session, hand, "no handler's condition matches", false);
    }
    throw Unfit(
        ledger::dead_reason::kUnmatched,
        "no handler's `when` matches this message; add one, or set consumer.unmatched = \"skip\"");
  }
  if (const auto* key = std::get_if<Key>(&hand.key)) {
    key_ = key->text;
    return apply_claimed(session, hand, key->text);
  }
  switch (hand.binding->missing_key) {
    case MissingKey::kProcess:
      return apply_unchecked(session, hand);
    case MissingKey::kSkip:
      return skip(session, hand, "no idempotency key", false);
    case MissingKey::kFail:
      break;
  }
  throw Unfit(
      ledger::dead_reason::kMissingKey,
      fmt::format("{}: the message has no idempotency key ({}); correct the producer or "
                  "idempotency.key, or choose idempotency.missing_key",
                  handlers::handler_text(hand.binding->label), std::get<NoKey>(hand.key).why));
}

void MessageProcessor::identify(const Message& message) {
  settle();
  key_.clear();
  binding_ = nullptr;
  in_handler_ = false;
  try {
    auto& hand = look_at(current_, message);
    binding_ = context_.router.route(hand.message, hand.json);
    hand.binding = binding_;
    if (binding_ == nullptr || binding_->key_function != nullptr)
      return;
    const auto key = derive_key(*hand.binding, hand.message, hand.json);
    if (const auto* found = std::get_if<Key>(&key))
      key_ = found->text;
  } catch (...) {  // code's may be anything
    // What cannot be read has no name.
    return;
  }
}

std::optional<postgres::NextStart> MessageProcessor::prepare_next() {
  if (!next_)
    return std::nullopt;
  try {
    auto& hand = look_at(1 - current_, next_->message);
    study(hand);
    // A batch claims its keys by itself.
    if (hand.binding == nullptr || hand.binding->batch != nullptr ||
        !std::holds_alternative<Key>(hand.key))
      return std::nullopt;
    const auto scope = scopes_.known(*hand.binding, hand.message.topic(), next_->source);
    if (!scope)
      return std::nullopt;
    next_claim_.clear();
    // Only what comes from Kafka has a next one, so a parked key holds it back.
    const bool parks = hand.binding->may_park(hand.message);
    fill_claim(next_claim_, *scope, next_->source, hand, parks);
    return postgres::NextStart{claim_statement(parks), next_claim_, hand.binding->frame};
  } catch (...) {  // code's may be anything
    // It is said when that message is in hand.
    return std::nullopt;
  }
}

const postgres::Statement& MessageProcessor::claim_statement(bool parks) const {
  return parks ? context_.keys.claim_unless_parked_statement() : context_.keys.claim_statement();
}

void MessageProcessor::fill_claim(postgres::Parameters& parameters, ledger::ScopeId scope,
                                  ledger::SourceId source, const InHand& hand, bool parks) const {
  context_.keys.fill(
      parameters, {scope, std::get<Key>(hand.key).text, message::payload_hash(hand.message), source,
                   hand.message.partition(), hand.message.offset()});
  if (parks)
    context_.dead_letters.fill_record_key(parameters, hand.message);
}

Outcome MessageProcessor::apply_claimed(postgres::Session& session, InHand& hand,
                                        const std::string& key) {
  const auto scope = scopes_.find(session, *hand.binding, hand.message.topic(), hand.step->source);
  postgres::Frame frame(session, hand.binding->frame);
  const bool parks = hand.step->last.respects_parking() && hand.binding->may_park(hand.message);
  const auto claim = [&] {
    if (started_) {
      auto started = *std::move(started_);
      started_.reset();
      return frame.proceed(std::move(started));
    }
    postgres::Parameters parameters;
    fill_claim(parameters, scope, hand.step->source, hand, parks);
    return frame.begin(claim_statement(parks), parameters);
  };
  const auto answer = claim();
  emit_step(Step::kClaimed, hand);

  const auto transaction = ledger::IdempotencyKeys::claimed_by(answer.get());
  if (!transaction) {
    if (parks && park_behind(frame, hand, key))
      return Outcome::kParked;
    return pass_duplicate(frame, hand, scope, key);
  }

  const auto response = run_handler(session, frame, hand);
  if (response) {
    postgres::Parameters stored;
    context_.keys.fill_response(stored, scope, key, *response);
    frame.defer_own(context_.keys.store_response_statement(), std::move(stored));
  }
  emit_step(Step::kHandled, hand);
  finish(frame, hand, *transaction, Outcome::kApplied);
  return Outcome::kApplied;
}

Response MessageProcessor::run_handler(postgres::Session& session, postgres::Frame& frame,
                                       InHand& hand) {
  in_handler_ = true;
  return call_handler(session,
                      [&] { return hand.binding->handler->apply(frame, hand.message, hand.json); });
}

Outcome MessageProcessor::apply_unchecked(postgres::Session& session, InHand& hand) {
  postgres::Frame frame(session, hand.binding->frame);
  postgres::Parameters none;
  const auto answer = frame.begin(context_.keys.unchecked_statement(), none);
  emit_step(Step::kClaimed, hand);
  const auto transaction = ledger::IdempotencyKeys::claimed_by(answer.get());
  if (hand.step->last.respects_parking() && hand.binding->may_park(hand.message) &&
      park_behind(frame, hand, ""))
    return Outcome::kParked;
  run_handler(session, frame, hand);
  emit_step(Step::kHandled, hand);
  finish(frame, hand, transaction.value_or(""), Outcome::kUnchecked);
  return Outcome::kUnchecked;
}

Outcome MessageProcessor::pass_duplicate(postgres::Frame& frame, const InHand& hand,
                                         ledger::ScopeId scope, const std::string& key) {
  postgres::Parameters parameters;
  context_.keys.fill_lookup(parameters, scope, key);
  const auto found = frame.exec(context_.keys.lookup_statement(), parameters);
  const auto stored = ledger::IdempotencyKeys::read(found.get());
  if (!stored) {
    // Removed between claim and look-up; the next try claims it.
    throw postgres::Error("40001", "the idempotency key vanished while it was looked at");
  }
  if (hand.binding->conflicts(message::payload_hash(hand.message), stored->payload_hash)) {
    throw Unfit(
        ledger::dead_reason::kConflict,
        fmt::format(
            "its idempotency key was processed before with ANOTHER payload, at {} [{}] offset {}: "
            "often "
            "the key names an entity, not an event. Choose a key that is unique per event, or set "
            "idempotency.conflict = \"ignore\" if producers only re-serialise",
            stored->topic, stored->partition, stored->offset));
  }
  if (ledger::renews(hand.message.timestamp_ms(), stored->created_ms)) {
    postgres::ArrayElements keys;
    keys.add_text(key);
    postgres::Parameters renewal;
    context_.keys.fill_renewal(renewal, scope, keys);
    frame.defer_own(context_.keys.renew_statement(), std::move(renewal));
  }
  finish(frame, hand, stored->transaction, Outcome::kDuplicate);
  tell_duplicate(context_.observers, *hand.binding, hand.message, stored->response);
  return Outcome::kDuplicate;
}

bool MessageProcessor::park_behind(postgres::Frame& frame, const InHand& hand,
                                   const std::string& key) {
  postgres::Parameters record_key;
  context_.dead_letters.fill_record_key(record_key, hand.message);
  const auto answer = frame.exec(context_.dead_letters.is_parked_statement(), record_key);
  if (!ledger::DeadLetters::parked(answer.get()))
    return false;
  ledger::Burial burial;
  burial.parked = true;
  burial.reason = ledger::dead_reason::kParked;
  burial.handler = hand.binding->label;
  burial.idempotency_key = key;
  burial.error = "waits behind an earlier message of its record key";
  burial.leader_epoch = hand.step->leader_epoch;
  bury(frame, hand, burial, ledger::DeadLetters::transaction(answer.get()));
  return true;
}

void MessageProcessor::bury(postgres::Frame& frame, const InHand& hand,
                            const ledger::Burial& burial, const std::string& transaction) {
  // As everybody who changes what waits: the record key's row before the letter's.
  if (burial.parks_its_key) {
    postgres::Parameters record_key;
    context_.dead_letters.fill_record_key(record_key, hand.message);
    frame.defer_own(context_.dead_letters.park_key_statement(), std::move(record_key));
  }
  postgres::Parameters letter;
  context_.dead_letters.fill_burial(letter, hand.message, burial);
  frame.defer_own(context_.dead_letters.bury_statement(), std::move(letter));
  finish(frame, hand, transaction, burial.parked ? Outcome::kParked : Outcome::kDead,
         fmt::format("{}: {}", burial.reason, burial.error));
}

void MessageProcessor::set_aside(postgres::Session& session, const MessageStep& step,
                                 FailurePolicy policy, const ledger::Burial& burial) {
  next_.reset();
  const auto& hand = take_in_hand(step);
  if (policy == FailurePolicy::kSkip) {
    skip(session, hand, ledger::storable_text(burial.error, 1000), true);
    return;
  }
  postgres::Frame frame(session, {});
  postgres::Parameters none;
  const auto answer = frame.begin(context_.keys.unchecked_statement(), none);
  bury(frame, hand, burial, ledger::IdempotencyKeys::claimed_by(answer.get()).value_or(""));
}

Outcome MessageProcessor::skip(postgres::Session& session, const InHand& hand,
                               const std::string& reason, bool with_payload) {
  postgres::Frame frame(session, {});
  postgres::Parameters none;
  const auto answer = frame.begin(context_.keys.unchecked_statement(), none);
  const auto transaction = ledger::IdempotencyKeys::claimed_by(answer.get());
  postgres::Parameters record;
  context_.skips.fill(record, hand.message, reason, with_payload);
  frame.defer_own(context_.skips.record_statement(), std::move(record));
  finish(frame, hand, transaction.value_or(""), Outcome::kSkipped);
  return Outcome::kSkipped;
}

void MessageProcessor::finish(postgres::Frame& frame, const InHand& hand,
                              const std::string& transaction, Outcome outcome,
                              std::string_view why) {
  postgres::Parameters parameters;
  hand.step->last.fill(parameters, transaction, outcome);

  postgres::FinishHooks hooks;
  if (context_.observers.every_step()) {
    hooks.before_commit = [&] { emit(Step::kAdvancing, hand); };
    hooks.commit_sent = [&] { emit(Step::kCommitting, hand); };
  }
  auto started =
      frame.finish(hand.step->last.statement(outcome), parameters, hooks, prepare_next());
  if (started)
    started_.emplace(*std::move(started));

  switch (outcome) {
    case Outcome::kDuplicate:
      emit(Step::kDuplicate, hand);
      break;
    case Outcome::kSkipped:
      emit(Step::kSkipped, hand);
      break;
    case Outcome::kDead:
      emit(Step::kDeadLettered, hand, why);
      break;
    case Outcome::kParked:
      emit(Step::kParked, hand, why);
      break;
    default:
      emit(Step::kCommitted, hand);
  }
}

}  // namespace pawl::engine
