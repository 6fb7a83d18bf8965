#include "engine/message_processor.hpp"

#include <fmt/format.h>

#include <iterator>

#include "message/idempotency_key.hpp"
#include "pawl/errors.hpp"

namespace pawl::engine {

using ledger::Outcome;

MessageProcessor::MessageProcessor(Context& context) : context_(context) {}

void MessageProcessor::emit(Step what, const InHand& hand) const {
  Event event{what};
  event.topic = hand.message.topic();
  event.partition = hand.message.partition();
  event.offset = hand.message.offset();
  event.key = key_;
  context_.observers.emit(event);
}

void MessageProcessor::emit_step(Step what, const InHand& hand) const {
  if (context_.observers.every_step())
    emit(what, hand);
}

MessageProcessor::InHand& MessageProcessor::look_at(std::size_t slot, const MessageStep& step,
                                                    const kafka::Record& record) {
  const auto message = record.view(step.partition.topic, step.topic_id);
  return hands_[slot].emplace(step, record, message, readers_[slot]);
}

MessageProcessor::InHand& MessageProcessor::take_in_hand(const MessageStep& step,
                                                         const kafka::Record& record) {
  const auto other = 1 - current_;
  if (started_ && hands_[other] && hands_[other]->record == &record) {
    current_ = other;
    hands_[current_]->step = &step;
  } else {
    settle();
    look_at(current_, step, record);
  }
  return *hands_[current_];
}

void MessageProcessor::settle() noexcept {
  started_.reset();
}

void MessageProcessor::study(InHand& hand) const {
  hand.binding = context_.router.route(hand.message, hand.json);
  if (hand.binding != nullptr)
    hand.key = derive_key(hand);
  hand.studied = true;
}

Outcome MessageProcessor::process(postgres::Session& session, const MessageStep& step,
                                  const kafka::Record& record, std::optional<Upcoming> next) {
  key_.clear();
  next_.reset();
  if (next)
    next_.emplace(*next);
  auto& hand = take_in_hand(step, record);
  emit_step(Step::kFetched, hand);

  if (!hand.studied)
    study(hand);
  if (hand.binding == nullptr) {
    if (context_.options.consumer.unmatched == Unmatched::kSkip) {
      return skip(session, hand, "no handler's condition matches");
    }
    throw PermanentError(
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
      return skip(session, hand, "no idempotency key");
    case MissingKey::kFail:
      break;
  }
  throw PermanentError(
      fmt::format("handler {}: the message has no idempotency key ({}); correct the producer or "
                  "idempotency.key, or choose idempotency.missing_key",
                  hand.binding->label, std::get<NoKey>(hand.key).why));
}

std::optional<postgres::NextStart> MessageProcessor::prepare_next() {
  if (!next_)
    return std::nullopt;
  try {
    auto& hand = look_at(1 - current_, next_->step, next_->record);
    study(hand);
    if (hand.binding == nullptr || !std::holds_alternative<Key>(hand.key))
      return std::nullopt;
    const auto scope = scopes_.find(scope_name(hand));
    if (scope == scopes_.end())
      return std::nullopt;
    next_claim_.clear();
    fill_claim(next_claim_, scope->second, hand);
    return postgres::NextStart{context_.keys.claim_statement(), next_claim_, hand.binding->frame};
  } catch (const std::exception&) {
    // It is said when that message is in hand.
    return std::nullopt;
  }
}

std::variant<MessageProcessor::NoKey, MessageProcessor::Key> MessageProcessor::derive_key(
    InHand& hand) const {
  if (hand.binding->key_function != nullptr) {
    auto raw = (*hand.binding->key_function)(hand.message);
    if (!raw)
      return NoKey{"its key function returned none"};
    if (auto key = message::make_idempotency_key(std::move(*raw)))
      return Key{*std::move(key)};
    return NoKey{"its key function returned an empty one"};
  }
  if (!hand.binding->key_template)
    return NoKey{"none is configured"};
  const auto& pattern = *hand.binding->key_template;
  auto rendered = pattern.render_key(hand.message, hand.json);
  if (auto* text = std::get_if<message::KeyText>(&rendered)) {
    // A rendered key is never empty.
    return Key{message::make_idempotency_key(std::move(text->text)).value()};
  }
  const auto& missing = std::get<message::Missing>(rendered);
  return NoKey{fmt::format("nothing at {{{}}}, column {} of {}", missing.source, missing.column,
                           pattern.text())};
}

const std::string& MessageProcessor::scope_name(const InHand& hand) {
  if (!hand.binding->scope.empty())
    return hand.binding->scope;
  // Two topics' ids never collide unless somebody asks for it by naming a scope.
  const auto& kafka = context_.options.kafka;
  scope_name_.clear();
  fmt::format_to(std::back_inserter(scope_name_), "{}/{}/{}", kafka.cluster, kafka.group,
                 hand.message.topic());
  return scope_name_;
}

ledger::ScopeId MessageProcessor::scope_of(postgres::Session& session, const InHand& hand) {
  const auto& name = scope_name(hand);
  const auto known = scopes_.find(name);
  if (known != scopes_.end())
    return known->second;
  const auto scope = context_.keys.scope(session, name);
  scopes_.emplace(name, scope);
  return scope;
}

void MessageProcessor::fill_claim(postgres::Parameters& parameters, ledger::ScopeId scope,
                                  const InHand& hand) const {
  const auto value = hand.message.has_value() ? std::optional(hand.message.value()) : std::nullopt;
  context_.keys.fill(parameters,
                     {scope, std::get<Key>(hand.key).text, message::payload_hash(value),
                      hand.step->source, hand.message.partition(), hand.message.offset()});
}

Outcome MessageProcessor::apply_claimed(postgres::Session& session, InHand& hand,
                                        const std::string& key) {
  const auto scope = scope_of(session, hand);
  postgres::Frame frame(session, hand.binding->frame);
  const auto claim = [&] {
    if (started_) {
      auto started = *std::move(started_);
      started_.reset();
      return frame.proceed(std::move(started));
    }
    postgres::Parameters parameters;
    fill_claim(parameters, scope, hand);
    return frame.begin(context_.keys.claim_statement(), parameters);
  };
  const auto answer = claim();
  emit_step(Step::kClaimed, hand);

  const auto transaction = ledger::IdempotencyKeys::claimed_by(answer.get());
  if (!transaction)
    return pass_duplicate(frame, hand, scope, key);

  const auto response = run_handler(session, frame, hand);
  if (response) {
    postgres::Parameters stored;
    context_.keys.fill_response(stored, scope, key, *response);
    frame.defer(context_.keys.store_response_statement(), std::move(stored), std::nullopt,
                "response");
  }
  emit_step(Step::kHandled, hand);
  finish(frame, hand, *transaction, Outcome::kApplied);
  return Outcome::kApplied;
}

Response MessageProcessor::run_handler(postgres::Session& session, postgres::Frame& frame,
                                       InHand& hand) {
  try {
    return hand.binding->handler->apply(frame, hand.message, hand.json);
  } catch (const std::exception& error) {
    if (!session.alive() || session.in_transaction())
      throw;
    // It may have committed one half before the other failed.
    throw postgres::Error(
        std::string(postgres::kTransactionEndedState),
        fmt::format("the handler ended the transaction itself and then failed: {}", error.what()));
  }
}

Outcome MessageProcessor::apply_unchecked(postgres::Session& session, InHand& hand) {
  postgres::Frame frame(session, hand.binding->frame);
  postgres::Parameters none;
  const auto answer = frame.begin(context_.keys.unchecked_statement(), none);
  emit_step(Step::kClaimed, hand);
  const auto transaction = ledger::IdempotencyKeys::claimed_by(answer.get());
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
  const auto value = hand.message.has_value() ? std::optional(hand.message.value()) : std::nullopt;
  if (stored->payload_hash != message::payload_hash(value) &&
      hand.binding->conflict == Conflict::kFail) {
    throw PermanentError(fmt::format(
        "its idempotency key was processed before with ANOTHER payload, at {} [{}] offset {}: "
        "often "
        "the key names an entity, not an event. Choose a key that is unique per event, or set "
        "idempotency.conflict = \"ignore\" if producers only re-serialise",
        stored->topic, stored->partition, stored->offset));
  }
  finish(frame, hand, stored->transaction, Outcome::kDuplicate);
  if (hand.binding->on_duplicate != nullptr) {
    try {
      (*hand.binding->on_duplicate)(hand.message, stored->response);
    } catch (const std::exception& error) {
      const auto text =
          fmt::format("on_duplicate of handler {} threw: {}; the duplicate is passed all the same",
                      hand.binding->label, error.what());
      Event event{Step::kWarning};
      event.topic = hand.message.topic();
      event.partition = hand.message.partition();
      event.offset = hand.message.offset();
      event.detail = text;
      context_.observers.emit(event);
    }
  }
  return Outcome::kDuplicate;
}

Outcome MessageProcessor::skip(postgres::Session& session, const InHand& hand,
                               const std::string& reason) {
  postgres::Frame frame(session, {});
  postgres::Parameters none;
  const auto answer = frame.begin(context_.keys.unchecked_statement(), none);
  const auto transaction = ledger::IdempotencyKeys::claimed_by(answer.get());
  postgres::Parameters record;
  context_.skips.fill(record, hand.message, reason, false);
  frame.defer(context_.skips.record_statement(), std::move(record), std::nullopt, "skip record");
  finish(frame, hand, transaction.value_or(""), Outcome::kSkipped);
  return Outcome::kSkipped;
}

void MessageProcessor::finish(postgres::Frame& frame, const InHand& hand,
                              const std::string& transaction, Outcome outcome) {
  ledger::Advance advance;
  advance.epoch = hand.step->epoch;
  advance.previous = hand.step->previous;
  advance.next = hand.message.offset();
  advance.transaction = transaction;
  advance.outcome = outcome;
  advance.halted = hand.step->halted;
  advance.leader_epoch = hand.record->leader_epoch();
  if (hand.message.timestamp_ms() >= 0)
    advance.timestamp_ms = hand.message.timestamp_ms();
  postgres::Parameters parameters;
  context_.offsets.fill(parameters, hand.step->partition, advance);

  postgres::FinishHooks hooks;
  if (context_.observers.every_step()) {
    hooks.before_commit = [&] { emit(Step::kAdvancing, hand); };
    hooks.commit_sent = [&] { emit(Step::kCommitting, hand); };
  }
  auto started =
      frame.finish(context_.offsets.advance_statement(advance), parameters, hooks, prepare_next());
  if (started)
    started_.emplace(*std::move(started));

  switch (outcome) {
    case Outcome::kDuplicate:
      emit(Step::kDuplicate, hand);
      break;
    case Outcome::kSkipped:
      emit(Step::kSkipped, hand);
      break;
    default:
      emit(Step::kCommitted, hand);
  }
}

}  // namespace pawl::engine
