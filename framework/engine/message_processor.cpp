#include "engine/message_processor.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <system_error>
#include <utility>

#include "config/shell_word.hpp"
#include "engine/failure.hpp"
#include "engine/handler_call.hpp"
#include "engine/stopwatch.hpp"
#include "handlers/handler_statement.hpp"
#include "message/digest.hpp"
#include "message/idempotency_key.hpp"
#include "pawl/errors.hpp"
#include "postgres/transaction.hpp"

namespace pawl::engine {

using ledger::Outcome;

namespace {

/// How often a message asks for a key that another attempt has.
constexpr std::chrono::milliseconds kShortestPending{20};
constexpr std::chrono::milliseconds kLongestPending{500};

ledger::GivenBack known_of(const LeasedCall& call) {
  switch (call.outcome()) {
    case LeasedCall::Outcome::kDone:
      return ledger::GivenBack::kDone;
    case LeasedCall::Outcome::kNotDone:
      return ledger::GivenBack::kNotDone;
    case LeasedCall::Outcome::kNone:
    case LeasedCall::Outcome::kNotBegun:
      return ledger::GivenBack::kNotBegun;
    case LeasedCall::Outcome::kUnknown:
      break;
  }
  return ledger::GivenBack::kUnknown;
}

/// Where the system has no thread for the keeper, no lease may be taken.
ledger::KeyLease propose(LeaseKeeper& keeper, ledger::ScopeId scope, const std::string& key) {
  try {
    return keeper.propose(scope, key);
  } catch (const std::system_error& error) {
    throw LeasePending(fmt::format("no thread can be had to keep its lease: {}", error.what()),
                       kLongestPending);
  }
}

/// Ends a transaction that records a call for a message which is another owner's by now.
class UnplacedStep final : public LastStep {
 public:
  explicit UnplacedStep(const ledger::IdempotencyKeys& keys) : keys_(keys) {}

  void request(postgres::Request& request, const std::string& /*transaction*/,
               Outcome /*outcome*/) const override {
    keys_.name_transaction(request);
  }
  [[nodiscard]] bool names_transaction() const override { return false; }
  [[nodiscard]] bool respects_parking() const override { return false; }
  [[nodiscard]] bool may_leave_out() const override { return false; }

 private:
  const ledger::IdempotencyKeys& keys_;
};

/// Another step in a message's place, as long as this lives.
class Exchanged {
 public:
  Exchanged(const MessageStep*& place, const MessageStep* other)
      : place_(place), before_(std::exchange(place, other)) {}
  ~Exchanged() { place_ = before_; }
  Exchanged(const Exchanged&) = delete;
  Exchanged& operator=(const Exchanged&) = delete;

 private:
  const MessageStep*& place_;
  const MessageStep* const before_;
};

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

/// Of a message that has ended.
void MessageProcessor::emit_end(Step what, const InHand& hand, std::string_view detail,
                                bool unchecked) const {
  auto event = event_of_hand(what, hand, detail);
  event.unchecked = unchecked;
  if (context_.observers.times())
    event.timing = &timing_;
  context_.observers.emit(event);
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
    emit_step(Step::kFetched, hand);
  find_handler(hand, subject);
  if (subject.binding == nullptr) {
    if (context_.options.consumer.unmatched == Unmatched::kSkip && step.last.may_leave_out())
      return skip(session, hand, "no handler's condition matches", false);
    throw Unfit(
        ledger::dead_reason::kUnmatched,
        "no handler's `when` matches this message; add one, or set consumer.unmatched = \"skip\"");
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
      fmt::format("{}: the message has no idempotency key ({}); correct the producer or "
                  "idempotency.key, or choose idempotency.missing_key",
                  handlers::handler_text(hand.binding().label), std::get<NoKey>(hand.key).why));
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
    const auto scope = scopes_.known(*binding, hand.message.topic(), next_->source);
    if (!scope)
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

ledger::Claim MessageProcessor::claim_of(ledger::ScopeId scope, ledger::SourceId source,
                                         const InHand& hand, bool parks) const {
  ledger::Claim claim{scope,  *hand.key_text(),         message::payload_hash(hand.message),
                      source, hand.message.partition(), hand.message.offset()};
  if (parks)
    claim.unless_parked = context_.dead_letters.record_key(hand.message);
  return claim;
}

void MessageProcessor::request_claim(postgres::Request& request, ledger::ScopeId scope,
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
  const auto scope = scopes_.known(binding, hand.message.topic(), hand.step->source);
  if (planner == nullptr || !scope)
    return false;
  try {
    plan_.clear();
    if (!planner->plan(plan_, hand.message, hand.json))
      return false;
    postgres::Frame frame(session, binding.frame);
    const bool parks = hand.step->last.respects_parking() && binding.may_park(hand.message);
    context_.keys.claim_or_raise(request_, claim_of(*scope, hand.step->source, hand, parks));
    frame.begin_later(std::exchange(request_, {}));
    for (auto& step : plan_.steps()) {
      if (step.owned) {
        frame.defer(step.owned, std::move(step.request.parameters), std::nullopt, "");
      } else {
        frame.defer(*step.request.statement, std::move(step.request.parameters), std::nullopt, "");
      }
    }
    emit_step(Step::kClaimed, hand);
    emit_step(Step::kHandled, hand);
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
  const auto scope = scopes_.find(session, binding, hand.message.topic(), hand.step->source);
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
  emit_step(Step::kClaimed, hand);

  const auto transaction = ledger::IdempotencyKeys::claimed_by(answer.get());
  if (!transaction) {
    if (parks && park_behind(frame, hand, subject.key))
      return Outcome::kParked;
    return pass_duplicate(frame, hand, scope, subject.key);
  }

  if (binding.leased != nullptr) {
    // It was finished or parked when the lease was asked for, and is not any more.
    throw postgres::Error(std::string(postgres::kKeyVanishedState),
                          "the idempotency key vanished while it was looked at");
  }
  const auto response = run_handler(session, frame, hand, subject);
  require_fits(hand.binding(), response);
  if (response)
    frame.defer_own(context_.keys.store_response(scope, subject.key, *response));
  emit_step(Step::kHandled, hand);
  finish(frame, hand, *transaction, Outcome::kApplied);
  return Outcome::kApplied;
}

Response MessageProcessor::run_handler(postgres::Session& session, postgres::Frame& frame,
                                       InHand& hand, Subject& subject) {
  subject.handler_begun = true;
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
  context_.keys.name_transaction(request_);
  const auto answer = begun ? frame.exec(request_) : frame.begin(request_);
  emit_step(Step::kClaimed, hand);
  const auto transaction = ledger::IdempotencyKeys::claimed_by(answer.get());
  if (hand.step->last.respects_parking() && hand.binding().may_park(hand.message) &&
      park_behind(frame, hand, ""))
    return Outcome::kParked;
  run_handler(session, frame, hand, subject);
  emit_step(Step::kHandled, hand);
  finish(frame, hand, transaction.value_or(""), Outcome::kUnchecked);
  return Outcome::kUnchecked;
}

std::unique_ptr<LeasedCall> MessageProcessor::prepare_call(postgres::Session& session,
                                                           const MessageStep& step,
                                                           Subject& subject) {
  subject = {};
  next_.reset();
  auto& hand = take_in_hand(session, step);
  emit_step(Step::kFetched, hand);
  find_handler(hand, subject);
  if (subject.binding == nullptr || subject.binding->leased == nullptr ||
      hand.key_text() == nullptr)
    return nullptr;
  subject.key = *hand.key_text();
  return acquire_lease(session, hand);
}

ledger::LeaseAnswer MessageProcessor::ask_for_lease(
    postgres::Session& session, ledger::LeaseRequest& request,
    std::optional<ledger::AskedLease>& asked) const {
  using How = ledger::LeaseAnswer::How;
  auto& keeper = *context_.lease_keeper;
  if (!keeper.may_ask())
    throw LeasePending("no lease can be had now", kLongestPending);
  try {
    auto answer = context_.leases->acquire(session, request);
    asked.reset();
    // Else nothing had to be written for it.
    if (answer.how == How::kMine || answer.how == How::kDone)
      keeper.reachable().answered();
    return answer;
  } catch (const ledger::LeasesAway& error) {
    if (request.is_spent)
      asked.reset();
    keeper.reachable().failed(error.what());
    throw LeasePending(error.what(), kLongestPending);
  } catch (...) {
    if (request.is_spent)
      asked.reset();
    throw;
  }
}

/// Whether it was given nobody knows; its message is not this processor's any more.
void MessageProcessor::forget_asked(postgres::Session& session,
                                    const ledger::AskedLease& asked) const noexcept {
  try {
    (void)context_.leases->give_back(session, asked.lease, ledger::GivenBack::kNotBegun, false, {});
  } catch (const std::exception&) {  // NOLINT(bugprone-empty-catch): it ends by itself
  }
}

std::unique_ptr<LeasedCall> MessageProcessor::acquire_lease(postgres::Session& session,
                                                            InHand& hand) {
  using How = ledger::LeaseAnswer::How;
  const auto& binding = hand.binding();
  const auto& message = hand.message;
  auto& keeper = *context_.lease_keeper;
  const auto& key = *hand.key_text();
  const auto scope_id = scopes_.find(session, binding, message.topic(), hand.step->source);
  ledger::LeaseRequest request;
  request.subject = {message::payload_hash(message), hand.step->source, message.partition(),
                     message.offset()};
  auto& asked = hand.step->asked == nullptr ? asked_ : *hand.step->asked;
  // Under the same token: the answer may be all that was lost.
  if (!asked || asked->lease.scope != scope_id || asked->lease.key != key ||
      asked->subject != request.subject) {
    if (asked)
      forget_asked(session, *asked);
    asked = ledger::AskedLease{propose(keeper, scope_id, key), request.subject};
  }
  request.lease = asked->lease;
  request.message =
      fmt::format("{} [{}] offset {}", message.topic(), message.partition(), message.offset());
  request.time = keeper.time();
  request.any_payload = binding.conflict == Conflict::kIgnore;
  request.fence = hand.step->last.fence();
  if (hand.step->last.respects_parking() && binding.may_park(message))
    request.unless_parked = context_.dead_letters.record_key(message);
  const auto asked_at = BootClock::now();
  const auto answer = ask_for_lease(session, request, asked);
  switch (answer.how) {
    case How::kFinished:
    case How::kParked:
      return nullptr;
    case How::kPending:
      throw LeasePending(fmt::format("its key is being processed by {}", answer.holder),
                         std::clamp(answer.wait, kShortestPending, kLongestPending));
    case How::kConflict:
      throw Unfit(
          ledger::dead_reason::kConflict,
          fmt::format("an unfinished call for its idempotency key has ANOTHER payload, that of {}: "
                      "often the key names an entity, not an event. Choose a key that is unique "
                      "per event, or set idempotency.conflict = \"ignore\" if producers only "
                      "re-serialise",
                      answer.holder));
    case How::kHeld:
      throw UnknownOutcome(fmt::format(
          "an attempt for its key, of when leases were kept in PostgreSQL, is not finished; pawl "
          "leases show --config FILE -- {} has it. Run with leases.store = \"postgres\" until it "
          "is, and change the store while no process runs",
          shell_word(key)));
    case How::kMine:
    case How::kDone:
      break;
  }
  emit_step(Step::kLeased, hand);
  std::string buffer;
  const auto& scope = scope_name(context_.options.kafka, binding.scope, message.topic(), buffer);
  return std::make_unique<LeasedCall>(
      keeper, binding, message::remote_key(scope, key),
      TopicPartition{std::string(message.topic()), message.partition()}, request.subject, answer,
      keeper.hold(request.lease, asked_at));
}

Outcome MessageProcessor::process_leased(postgres::Session& session, InHand& hand,
                                         Subject& subject) {
  if (hand.step->call != nullptr)
    return finish_call(session, hand, *hand.step->call, subject);
  if (hand.step->nothing_to_call)
    return apply_claimed(session, hand, subject);
  const auto is_same = [&](const LeasedCall& call) {
    const auto& of = call.subject();
    return call.lease().key == subject.key && of.source == hand.step->source &&
           of.partition == hand.message.partition() && of.offset == hand.message.offset();
  };
  if (call_ && !is_same(*call_))
    let_go_of_call(session);
  if (!call_) {
    auto call = acquire_lease(session, hand);
    if (!call)
      return apply_claimed(session, hand, subject);
    call->run(hand.message);
    emit_step(Step::kCalled, hand);
    call_ = std::move(call);
  }
  try {
    const auto outcome = finish_call(session, hand, *call_, subject);
    call_.reset();
    return outcome;
  } catch (...) {
    if (call_->ended())
      call_.reset();
    throw;
  }
}

/// Stores what became of the call. Throws with the call ended where there is nothing more to store;
/// else it is to be repeated.
Outcome MessageProcessor::finish_call(postgres::Session& session, InHand& hand, LeasedCall& call,
                                      Subject& subject) {
  subject.lease = call.lease();
  if (call.took() > std::chrono::steady_clock::duration::zero())
    timing_.handler = call.took();
  if (call.outcome() != LeasedCall::Outcome::kDone) {
    give_back(session, hand, call, known_of(call), std::nullopt);
    std::rethrow_exception(call.error());
  }
  try {
    require_fits(hand.binding(), call.response());
  } catch (...) {
    give_back(session, hand, call, ledger::GivenBack::kDone, std::nullopt);
    throw;
  }
  try {
    record_call(session, hand, call, subject);
    call.end();
    return Outcome::kApplied;
  } catch (const postgres::InDoubt&) {
    call.note_doubt();
    throw;
  } catch (const postgres::Error& error) {
    using postgres::FailureClass;
    if (!session.alive())
      throw;
    if (error.sqlstate() == postgres::kLeaseLostState)
      lose_lease(session, hand, call);
    const auto kind = error.failure();
    if (kind == FailureClass::kFenced || kind == FailureClass::kOutOfOrder ||
        kind == FailureClass::kRowMissing) {
      // The message is another owner's. What was done stays done: it will meet a duplicate.
      record_unplaced(session, hand, call, subject);
      throw;
    }
    if (kind == FailureClass::kTransactionEnded) {
      // It may have stored all of it, or nothing: the handler took that into its own hands. Where
      // it has, the lease is gone, and not lost.
      (void)context_.leases->give_back(session, call.lease(), ledger::GivenBack::kDone,
                                       call.settled(), call.response());
      call.end();
      throw;
    }
    const bool may_pass = kind == FailureClass::kContention || kind == FailureClass::kResource;
    // What is not kept would have to be called for once more.
    if ((may_pass && !subject.handler_begun) ||
        ((may_pass || kind == FailureClass::kProgram) && !context_.leases->keeps_responses()))
      throw;
    give_back(session, hand, call, ledger::GivenBack::kDone, call.response());
    throw;
  } catch (...) {  // code's may be anything
    if (session.alive())
      give_back(session, hand, call, ledger::GivenBack::kDone, call.response());
    throw;
  }
}

void MessageProcessor::record_unplaced(postgres::Session& session, InHand& hand, LeasedCall& call,
                                       Subject& subject) {
  const UnplacedStep unplaced(context_.keys);
  const MessageStep step{hand.message, hand.step->source, hand.step->leader_epoch, unplaced};
  const Exchanged exchanged(hand.step, &step);
  try {
    record_call(session, hand, call, subject);
    call.end();
  } catch (const postgres::InDoubt&) {
    call.note_doubt();
    throw;
  } catch (const postgres::Error& error) {
    if (!session.alive())
      throw;
    if (error.sqlstate() == postgres::kLeaseLostState)
      lose_lease(session, hand, call);
    give_back(session, hand, call, ledger::GivenBack::kDone, call.response());
  } catch (...) {  // code's may be anything
    if (session.alive())
      give_back(session, hand, call, ledger::GivenBack::kDone, call.response());
    throw;
  }
}

void MessageProcessor::record_call(postgres::Session& session, InHand& hand, const LeasedCall& call,
                                   Subject& subject) {
  const auto& leased = *hand.binding().leased;
  postgres::Frame frame(session, hand.binding().frame);
  const bool begun = begin_with_lock(frame, hand);
  context_.leases->record(request_, call.lease(), call.subject(), call.response(),
                          session.durable_commit());
  if (!begun && !leased.has_record() && !hand.step->last.names_transaction()) {
    // Nothing needs an answer before COMMIT.
    emit_step(Step::kClaimed, hand);
    emit_step(Step::kHandled, hand);
    frame.begin_later(std::exchange(request_, {}));
    finish(frame, hand, "", Outcome::kApplied);
    return context_.leases->recorded(call.lease());
  }
  const auto answer = begun ? frame.exec(request_) : frame.begin(request_);
  emit_step(Step::kClaimed, hand);
  const auto transaction = ledger::IdempotencyKeys::claimed_by(answer.get());
  if (leased.has_record()) {
    subject.handler_begun = true;
    (void)call_handler(session, [&] {
      leased.record(frame, hand.message, call.response());
      return Response{};
    });
  }
  emit_step(Step::kHandled, hand);
  finish(frame, hand, transaction.value_or(""), Outcome::kApplied);
  context_.leases->recorded(call.lease());
}

void MessageProcessor::give_back(postgres::Session& session, const InHand& hand, LeasedCall& call,
                                 ledger::GivenBack how, const Response& response) {
  const bool may_be_done = how == ledger::GivenBack::kUnknown || how == ledger::GivenBack::kDone;
  if (!context_.leases->give_back(session, call.lease(), how, call.settled(), response) &&
      may_be_done)
    lose_lease(session, hand, call);
  call.end();
}

/// Key and response, as record_unplaced() stores them: where nothing else keeps what it brought.
void MessageProcessor::record_alone(postgres::Session& session, const LeasedCall& call) {
  postgres::Frame frame(session, {});
  context_.leases->record(request_, call.lease(), call.subject(), call.response(),
                          session.durable_commit());
  frame.begin_later(std::exchange(request_, {}));
  context_.keys.name_transaction(request_);
  frame.finish(request_, {});
  context_.leases->recorded(call.lease());
}

void MessageProcessor::let_go_of_call(postgres::Session& session,
                                      const TopicPartition* of) noexcept {
  if (!call_ || (of != nullptr && !(call_->partition() == *of)))
    return;
  const auto call = std::move(call_);
  try {
    const bool done = call->outcome() == LeasedCall::Outcome::kDone;
    if (done && !context_.leases->keeps_responses() && !call->binding().leased->has_record())
      return record_alone(session, *call);
    const bool ours =
        context_.leases->give_back(session, call->lease(), known_of(*call), call->settled(),
                                   done ? call->response() : std::nullopt);
    if (!ours && call->may_be_done()) {
      Event event{Step::kWarning};
      event.partition = call->subject().partition;
      event.offset = call->subject().offset;
      tell_loss(session, *call, event);
    }
  } catch (const std::exception&) {  // NOLINT(bugprone-empty-catch): its lease ends by itself
  }
}

/// Another attempt may have been made beside this one; what this one brought is not recorded.
void MessageProcessor::lose_lease(postgres::Session& session, const InHand& hand,
                                  LeasedCall& call) {
  if (call.in_doubt()) {
    // It may have been recorded when the connection broke.
    context_.keys.look_up(request_, call.lease().scope, call.lease().key);
    const auto found = postgres::run_transaction(session, {std::move(request_)});
    const auto stored = ledger::IdempotencyKeys::read(found.back().get());
    if (stored && stored->topic == hand.message.topic() &&
        stored->partition == hand.message.partition() && stored->offset == hand.message.offset()) {
      call.end();
      throw postgres::Error(std::string(postgres::kOutOfOrderState),
                            "the message was finished when the connection broke");
    }
  }
  tell_loss(session, call, event_of(Step::kWarning, hand.message));
  call.end();
  throw postgres::Error(std::string(postgres::kLeaseLostState),
                        "the lease was lost while the call ran");
}

void MessageProcessor::tell_loss(postgres::Session& session, const LeasedCall& call,
                                 Event event) const {
  const bool returned = call.outcome() == LeasedCall::Outcome::kDone;
  context_.leases->note_loss(session, call.lease(), call.subject(), call.attempt(), returned);
  const auto text = fmt::format(
      "the lease of a call was another's before its outcome could be recorded: {}. Another attempt "
      "may have been made beside it; `pawl leases list --lost` has it. Compare with the other "
      "side, which knows the call as {}",
      returned ? "the call had returned" : "what the call did is unknown", call.remote_key());
  event.warning = Warning::kLeaseLost;
  event.key = call.lease().key;
  event.detail = text;
  context_.observers.emit(event);
}

Outcome MessageProcessor::pass_duplicate(postgres::Frame& frame, const InHand& hand,
                                         ledger::ScopeId scope, const std::string& key) {
  context_.keys.look_up(request_, scope, key);
  const auto found = frame.exec(request_);
  const auto stored = ledger::IdempotencyKeys::read(found.get());
  if (!stored) {
    throw postgres::Error(std::string(postgres::kKeyVanishedState),
                          "the idempotency key vanished while it was looked at");
  }
  if (hand.binding().conflicts(message::payload_hash(hand.message), stored->payload_hash)) {
    throw Unfit(
        ledger::dead_reason::kConflict,
        fmt::format(
            "its idempotency key was processed before with ANOTHER payload, at {} [{}] offset {}: "
            "often "
            "the key names an entity, not an event. Choose a key that is unique per event, or set "
            "idempotency.conflict = \"ignore\" if producers only re-serialise",
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
  burial.error = "waits behind an earlier message of its record key";
  burial.leader_epoch = hand.step->leader_epoch;
  if (hand.binding().failures.then == FailurePolicy::kRetryLater)
    burial.retry_after = std::chrono::milliseconds{0};
  bury(frame, hand, burial, ledger::DeadLetters::transaction(answer.get()));
  return true;
}

void MessageProcessor::bury(postgres::Frame& frame, const InHand& hand,
                            const ledger::Burial& burial, const std::string& transaction) {
  // As everybody who changes what waits: the record key's row before the letter's.
  if (burial.parks_its_key || burial.parked)
    frame.defer_own(context_.dead_letters.park_key(hand.message));
  frame.defer_own(context_.dead_letters.bury(hand.message, burial));
  if (burial.retry_after)
    frame.defer_own(context_.dead_letters.schedule(hand.message, burial));
  finish(frame, hand, transaction, burial.parked ? Outcome::kParked : Outcome::kDead,
         fmt::format("{}: {}", burial.reason, burial.error),
         burial.retry_after ? Step::kRetryLater : Step::kDeadLettered);
}

void MessageProcessor::set_aside(postgres::Session& session, const MessageStep& step,
                                 const Subject& subject, FailurePolicy policy,
                                 const ledger::Burial& burial) {
  next_.reset();
  auto& hand = take_in_hand(session, step);
  hand.route = subject.binding;
  hand.key = Key{subject.key};
  if (policy == FailurePolicy::kSkip) {
    skip(session, hand, ledger::storable_text(burial.error, 1000), true);
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
                              const std::string& transaction, Outcome outcome, std::string_view why,
                              Step dead) {
  hand.step->last.defer_before(frame,
                               frame.settings().isolation != postgres::Isolation::kReadCommitted);
  hand.step->last.request(request_, transaction, outcome);
  postgres::FinishHooks hooks;
  if (context_.observers.every_step()) {
    hooks.before_commit = [&] { emit(Step::kAdvancing, hand); };
    hooks.commit_sent = [&] { emit(Step::kCommitting, hand); };
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
      emit_end(Step::kDuplicate, hand);
      break;
    case Outcome::kSkipped:
      emit_end(Step::kSkipped, hand);
      break;
    case Outcome::kDead:
      emit_end(dead, hand, why);
      context_.letter_stored->ring();
      break;
    case Outcome::kParked:
      emit_end(Step::kParked, hand, why);
      context_.letter_stored->ring();
      break;
    default:
      emit_end(Step::kCommitted, hand, {}, outcome == Outcome::kUnchecked);
  }
}

}  // namespace pawl::engine
