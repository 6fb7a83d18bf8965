#include "engine/message_processor.hpp"

#include <fmt/format.h>

#include <utility>

#include "engine/failure.hpp"
#include "engine/handler_call.hpp"
#include "engine/stopwatch.hpp"
#include "ledger/rows.hpp"
#include "message/idempotency_key.hpp"
#include "message/traceparent.hpp"
#include "pawl/errors.hpp"
#include "text/located.hpp"

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

Event MessageProcessor::event_of_hand(Step what, const InHand& hand, std::string_view detail) {
  auto event = event_of(what, hand.message);
  if (const auto* key = hand.key_text())
    event.key = *key;
  event.detail = detail;
  if (hand.route != nullptr)
    event.handler = hand.route->label;
  return event;
}

void MessageProcessor::emit(Step what, const InHand& hand, std::string_view detail) const {
  context_.observers.emit(event_of_hand(what, hand, detail));
}

/// Of a message that is finished.
void MessageProcessor::emit_end(Event event, const InHand& hand) const {
  event.traceparent = message::traceparent_of(hand.message);
  if (context_.observers.times())
    event.timing = &timing_;
  context_.observers.emit(event);
}

void MessageProcessor::emit_buried(const InHand& hand, const Buried& buried) const {
  const auto& burial = buried.burial;
  const bool scheduled = burial.retry_after && !burial.parked;
  auto event = event_of_hand(burial.parked ? Step::kMessageParked
                             : scheduled   ? Step::kRetryScheduled
                                           : Step::kMessageDeadLettered,
                             hand, burial.error);
  std::string due_at;
  std::vector<EventField> fields;
  if (!burial.statement.empty())
    fields.push_back({"statement", std::string_view(burial.statement)});
  if (burial.attempts > 0)
    fields.push_back({"attempts", std::int64_t{burial.attempts}});
  if (scheduled) {
    using std::chrono::system_clock;
    due_at = ledger::to_string(
        std::chrono::floor<std::chrono::milliseconds>(system_clock::now() + *burial.retry_after));
    fields.push_back({"retry", 1});
    if (hand.route != nullptr) {
      fields.push_back(
          {"max_retries", static_cast<std::int64_t>(hand.route->failures.retry_later.size())});
    }
    fields.push_back({"due_at", std::string_view(due_at)});
  }
  event.handler = burial.handler;
  event.reason = burial.reason;
  event.sqlstate = burial.sqlstate;
  event.dead_letter_id = buried.dead_letter;
  event.fields = fields;
  emit_end(event, hand);
}

void MessageProcessor::emit_step(Step what, const InHand& hand) const {
  if (context_.observers.every_step())
    emit(what, hand);
}

MessageProcessor::InHand& MessageProcessor::look_at(std::size_t slot, const Message& message) {
  return hands_[slot].emplace(message, readers_[slot]);
}

MessageProcessor::InHand& MessageProcessor::take_in_hand(const postgres::Session& session,
                                                         const MessageStep& step) {
  const auto other = 1 - current_;
  // What was looked at ahead views records that are there only as long as its claim is open.
  if (ahead_ && session.keeps(*ahead_) && hands_[other] &&
      same_record(hands_[other]->message, step.message)) {
    current_ = other;
  } else {
    ahead_.reset();
    look_at(current_, step.message);
  }
  hands_[current_]->step = &step;
  timing_ = {};
  return *hands_[current_];
}

void MessageProcessor::study(InHand& hand) const {
  // Of a key that cannot be had it is known whose it would be.
  hand.route = context_.router.route(hand.message, hand.json);
  if (hand.route != nullptr)
    hand.key = derive_key(hand.binding(), hand.message, hand.json);
  hand.is_studied = true;
}

Outcome MessageProcessor::process(postgres::Session& session, const MessageStep& step,
                                  Subject& subject, std::optional<Upcoming> next) {
  subject = {};
  next_ = next;
  auto& hand = take_in_hand(session, step);
  if (step.call == nullptr && !step.nothing_to_call)
    emit_step(Step::kMessageFetched, hand);
  find_handler(hand, subject);
  if (subject.binding == nullptr) {
    if (context_.options.failures.unmatched == Unmatched::kSkip && step.last.may_leave_out())
      return skip(session, hand, "no handler's condition matches", false);
    throw Unfit(ledger::dead_reason::kUnmatched,
                "the condition `when` of no handler matches this message");
  }
  if (const auto* key = hand.key_text()) {
    subject.key = *key;
    return hand.binding().leased != nullptr ? process_leased(session, hand, subject)
                                            : apply_claimed(session, hand, subject);
  }
  return process_without_key(session, hand, subject);
}

void MessageProcessor::find_handler(InHand& hand, Subject& subject) const {
  try {
    if (!hand.is_studied)
      study(hand);
  } catch (...) {
    // The key's failure is its handler's: this policy holds.
    subject.binding = hand.route;
    throw;
  }
  subject.binding = hand.route;
}

Outcome MessageProcessor::process_without_key(postgres::Session& session, InHand& hand,
                                              Subject& subject) {
  switch (hand.binding().missing_key) {
    case MissingKey::kProcess:
      return apply_unchecked(session, hand, subject);
    case MissingKey::kSkip:
      if (hand.step->last.may_leave_out())
        return skip(session, hand, "no idempotency key", false);
      break;
    case MissingKey::kFail:
      break;
  }
  throw Unfit(
      ledger::dead_reason::kMissingKey,
      fmt::format("the message has no idempotency key ({})", std::get<NoKey>(hand.key).why));
}

std::optional<postgres::NextStart> MessageProcessor::prepare_next() {
  if (!next_)
    return std::nullopt;
  try {
    auto& hand = look_at(1 - current_, next_->message);
    study(hand);
    // A batch claims its keys by itself.
    const auto* binding = hand.route;
    if (binding == nullptr || binding->batch != nullptr || binding->leased != nullptr ||
        hand.key_text() == nullptr)
      return std::nullopt;
    const auto* scope = scopes_.known(*binding, hand.message.topic(), next_->source);
    if (scope == nullptr)
      return std::nullopt;
    // Only what comes from Kafka has a next one, so a parked key holds it back.
    const bool parks = binding->may_park(hand.message);
    request_claim(next_claim_, *scope, next_->source, hand, parks);
    return postgres::NextStart{next_claim_, binding->frame};
  } catch (...) {  // code's may be anything
    // It is said when that message is in hand.
    return std::nullopt;
  }
}

ledger::Claim MessageProcessor::claim_of(const ledger::Scope& scope, ledger::SourceId source,
                                         const InHand& hand, bool parks) const {
  ledger::Claim claim{scope,  *hand.key_text(),         message::payload_hash(hand.message),
                      source, hand.message.partition(), hand.message.offset()};
  if (parks)
    claim.unless_parked = context_.dead_letters.record_key(hand.message);
  claim.trace = message::trace_setting(hand.message);
  return claim;
}

/// Of the handler's statements, where that is wanted.
void MessageProcessor::comment(postgres::Frame& frame, const InHand& hand) const {
  if (context_.options.postgres.trace_comment)
    frame.comment(message::trace_comment(hand.message));
}

void MessageProcessor::request_claim(postgres::Request& request, const ledger::Scope& scope,
                                     ledger::SourceId source, const InHand& hand,
                                     bool parks) const {
  context_.keys.claim(request, claim_of(scope, source, hand, parks));
}

/// Where the transaction keeps one snapshot, with what the last step needs unchanged since. False:
/// it has not begun.
bool MessageProcessor::begin_with_lock(postgres::Frame& frame, const InHand& hand) {
  if (hand.binding().frame.isolation == postgres::Isolation::kReadCommitted ||
      !hand.step->last.request_first(request_))
    return false;
  frame.begin(request_);
  return true;
}

/// As a pipeline of one. False: nothing of it is stored, and it is to be applied step by step,
/// which says why.
bool MessageProcessor::apply_in_one_flight(postgres::Session& session, InHand& hand,
                                           Subject& subject) {
  const auto& binding = hand.binding();
  if (!hand.step->is_first_try || hand.step->last.names_transaction() ||
      context_.options.consumer.pipeline == 1 || binding.handler == nullptr ||
      binding.frame.isolation != postgres::Isolation::kReadCommitted)
    return false;
  const auto* planner = binding.handler->planner();
  const auto* scope = scopes_.known(binding, hand.message.topic(), hand.step->source);
  if (planner == nullptr || scope == nullptr)
    return false;
  try {
    plan_.clear(&session);
    if (!planner->plan(plan_, hand.message, hand.json))
      return false;
    postgres::Frame frame(session, binding.frame);
    const bool parks = hand.step->last.respects_parking() && binding.may_park(hand.message);
    context_.keys.claim_or_raise(request_, claim_of(*scope, hand.step->source, hand, parks));
    frame.begin_later(std::exchange(request_, {}));
    comment(frame, hand);
    for (auto& step : plan_.steps()) {
      if (step.owned) {
        frame.defer(step.owned, std::move(step.request.parameters), std::nullopt, "");
      } else {
        frame.defer(*step.request.statement, std::move(step.request.parameters), std::nullopt, "");
      }
    }
    emit_step(Step::kKeyClaimed, hand);
    emit_step(Step::kHandlerReturned, hand);
    // Where the server dies of it.
    subject.handler_begun = true;
    finish(frame, hand, "", Outcome::kApplied);
    return true;
  } catch (const postgres::InDoubt&) {
    throw;
  } catch (...) {  // code's may be anything
    if (!session.alive())
      throw;
    subject.handler_begun = false;
    return false;
  }
}

Outcome MessageProcessor::apply_claimed(postgres::Session& session, InHand& hand,
                                        Subject& subject) {
  if (apply_in_one_flight(session, hand, subject))
    return Outcome::kApplied;
  const auto& binding = hand.binding();
  const auto& scope = scopes_.find(session, binding, hand.message.topic(), hand.step->source);
  postgres::Frame frame(session, binding.frame);
  const bool parks = hand.step->last.respects_parking() && binding.may_park(hand.message);
  const auto claim = [&] {
    if (const auto ticket = std::exchange(ahead_, std::nullopt)) {
      if (auto answer = session.go_on(*ticket))
        return frame.proceed(*std::move(answer));
    }
    const bool begun = begin_with_lock(frame, hand);
    request_claim(request_, scope, hand.step->source, hand, parks);
    return begun ? frame.exec(request_) : frame.begin(request_);
  };
  const auto answer = claim();
  emit_step(Step::kKeyClaimed, hand);

  const auto transaction = ledger::IdempotencyKeys::claimed_by(answer.get());
  if (!transaction) {
    if (parks && park_behind(frame, hand, subject.key))
      return Outcome::kParked;
    return pass_duplicate(frame, hand, scope.id, subject.key);
  }

  if (binding.leased != nullptr) {
    // It was finished or parked when the lease was asked for, and is not any more.
    throw postgres::Error(std::string(postgres::kKeyVanishedState),
                          "the idempotency key was removed while it was read");
  }
  const auto response = run_handler(session, frame, hand, subject);
  require_fits(hand.binding(), response);
  if (response)
    frame.defer_own(context_.keys.store_response(scope.id, subject.key, *response));
  emit_step(Step::kHandlerReturned, hand);
  finish(frame, hand, *transaction, Outcome::kApplied);
  return Outcome::kApplied;
}

Response MessageProcessor::run_handler(postgres::Session& session, postgres::Frame& frame,
                                       InHand& hand, Subject& subject) {
  subject.handler_begun = true;
  comment(frame, hand);
  Stopwatch watch(context_.observers.times());
  auto response = call_handler(
      session, [&] { return hand.binding().handler->apply(frame, hand.message, hand.json); });
  watch.stop();
  timing_.handler = watch.read();
  return response;
}

Outcome MessageProcessor::apply_unchecked(postgres::Session& session, InHand& hand,
                                          Subject& subject) {
  postgres::Frame frame(session, hand.binding().frame);
  const bool begun = begin_with_lock(frame, hand);
  context_.keys.name_transaction(request_, message::trace_setting(hand.message));
  const auto answer = begun ? frame.exec(request_) : frame.begin(request_);
  emit_step(Step::kKeyClaimed, hand);
  const auto transaction = ledger::IdempotencyKeys::claimed_by(answer.get());
  if (hand.step->last.respects_parking() && hand.binding().may_park(hand.message) &&
      park_behind(frame, hand, ""))
    return Outcome::kParked;
  run_handler(session, frame, hand, subject);
  emit_step(Step::kHandlerReturned, hand);
  finish(frame, hand, transaction.value_or(""), Outcome::kUnchecked);
  return Outcome::kUnchecked;
}

Outcome MessageProcessor::pass_duplicate(postgres::Frame& frame, const InHand& hand,
                                         ledger::ScopeId scope, const std::string& key) {
  context_.keys.look_up(request_, scope, key);
  const auto found = frame.exec(request_);
  const auto stored = ledger::IdempotencyKeys::read(found.get());
  if (!stored) {
    throw postgres::Error(std::string(postgres::kKeyVanishedState),
                          "the idempotency key was removed while it was read");
  }
  if (hand.binding().conflicts(message::payload_hash(hand.message), stored->payload_hash)) {
    throw Unfit(
        ledger::dead_reason::kConflict,
        fmt::format("its idempotency key was already processed with another payload, at {}[{}]@{}",
                    stored->topic, stored->partition, stored->offset));
  }
  if (ledger::renews(hand.message.timestamp(), stored->created)) {
    postgres::ArrayElements keys;
    keys.add_text(key);
    postgres::Request renewal;
    context_.keys.renew(renewal, scope, keys);
    frame.defer_own(std::move(renewal));
  }
  finish(frame, hand, stored->transaction, Outcome::kDuplicate);
  tell_duplicate(context_.observers, hand.binding(), hand.message, stored->response);
  return Outcome::kDuplicate;
}

bool MessageProcessor::park_behind(postgres::Frame& frame, const InHand& hand,
                                   const std::string& key) {
  auto asked = context_.dead_letters.ask_parked(hand.message);
  const auto answer = frame.exec(asked);
  if (!ledger::DeadLetters::parked(answer.get()))
    return false;
  ledger::Burial burial;
  burial.parked = true;
  burial.reason = ledger::dead_reason::kParked;
  burial.handler = hand.binding().label;
  burial.idempotency_key = key;
  burial.error = ledger::kParkedError;
  burial.leader_epoch = hand.step->leader_epoch;
  if (hand.binding().failures.on_failure == FailurePolicy::kRetryLater)
    burial.retry_after = std::chrono::milliseconds{0};
  bury(frame, hand, burial, ledger::DeadLetters::transaction(answer.get()));
  return true;
}

void MessageProcessor::bury(postgres::Frame& frame, const InHand& hand,
                            const ledger::Burial& burial, const std::string& transaction) {
  Buried stored{burial};
  // The ID of a dead letter is reported. Of a parked message, the statements are sent with the
  // COMMIT.
  const bool is_told = !burial.parked;
  // As everybody who changes what waits: the record key's row before the letter's.
  if (burial.parks_its_key || burial.parked) {
    auto park = context_.dead_letters.park_key(hand.message);
    if (is_told)
      (void)frame.exec(park);
    else
      frame.defer_own(std::move(park));
  }
  auto letter = context_.dead_letters.bury(hand.message, burial);
  if (is_told) {
    const auto buried = frame.exec(letter);
    stored.dead_letter = ledger::integer(buried.get(), 0, 0);
  } else {
    frame.defer_own(std::move(letter));
  }
  if (burial.retry_after)
    frame.defer_own(context_.dead_letters.schedule(hand.message, burial));
  finish(frame, hand, transaction, burial.parked ? Outcome::kParked : Outcome::kDead, &stored);
}

void MessageProcessor::set_aside(postgres::Session& session, const MessageStep& step,
                                 const Subject& subject, FailurePolicy policy,
                                 const ledger::Burial& burial) {
  next_.reset();
  auto& hand = take_in_hand(session, step);
  hand.route = subject.binding;
  hand.key = Key{subject.key};
  if (policy == FailurePolicy::kSkip) {
    skip(session, hand, ledger::storable_text(texts::located(burial.statement, burial.error), 1000),
         true);
    return;
  }
  postgres::Frame frame(session, {});
  context_.keys.name_transaction(request_);
  const auto answer = frame.begin(request_);
  bury(frame, hand, burial, ledger::IdempotencyKeys::claimed_by(answer.get()).value_or(""));
  if (subject.lease)
    context_.leases->set_aside(*subject.lease);
}

Outcome MessageProcessor::skip(postgres::Session& session, const InHand& hand,
                               const std::string& reason, bool with_payload) {
  postgres::Frame frame(session, {});
  context_.keys.name_transaction(request_);
  const auto answer = frame.begin(request_);
  const auto transaction = ledger::IdempotencyKeys::claimed_by(answer.get());
  frame.defer_own(context_.skips.record(hand.message, reason, with_payload));
  finish(frame, hand, transaction.value_or(""), Outcome::kSkipped);
  return Outcome::kSkipped;
}

void MessageProcessor::finish(postgres::Frame& frame, const InHand& hand,
                              const std::string& transaction, Outcome outcome,
                              const Buried* buried) {
  hand.step->last.defer_before(frame,
                               frame.settings().isolation != postgres::Isolation::kReadCommitted);
  hand.step->last.request(request_, transaction, outcome);
  postgres::FinishHooks hooks;
  if (context_.observers.every_step()) {
    hooks.before_commit = [&] { emit(Step::kOffsetAdvancing, hand); };
    hooks.commit_sent = [&] { emit(Step::kCommitSent, hand); };
  }
  auto next = prepare_next();
  Stopwatch watch(context_.observers.times());
  ahead_ = frame.finish(request_, hooks, std::move(next));
  watch.stop();
  timing_.commit = watch.read();
  timing_.messages = 1;
  timing_.since_fetched = watch.since(hand.step->taken_at);

  switch (outcome) {
    case Outcome::kDuplicate:
      emit_end(event_of_hand(Step::kMessageDeduplicated, hand, {}), hand);
      break;
    case Outcome::kSkipped:
      emit_end(event_of_hand(Step::kMessageSkipped, hand, {}), hand);
      break;
    case Outcome::kDead:
    case Outcome::kParked:
      emit_buried(hand, *buried);
      context_.letter_stored->ring();
      break;
    default: {
      auto event = event_of_hand(Step::kMessageCommitted, hand, {});
      event.unchecked = outcome == Outcome::kUnchecked;
      emit_end(event, hand);
    }
  }
}

}  // namespace pawl::engine
