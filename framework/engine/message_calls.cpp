// The half of MessageProcessor that is about leased handlers: lease, call, and its record.
#include <fmt/format.h>

#include <algorithm>
#include <system_error>
#include <utility>
#include <variant>

#include "config/invocation.hpp"
#include "engine/after_record.hpp"
#include "engine/failure.hpp"
#include "engine/halt_texts.hpp"
#include "engine/handler_call.hpp"
#include "engine/message_processor.hpp"
#include "engine/unplaced_step.hpp"
#include "message/idempotency_key.hpp"
#include "message/traceparent.hpp"
#include "pawl/errors.hpp"
#include "postgres/transaction.hpp"

namespace pawl::engine {

using ledger::Outcome;

namespace {

/// How often a message asks for a key that another attempt has.
constexpr std::chrono::milliseconds kShortestPending{20};
constexpr std::chrono::milliseconds kLongestPending{500};

/// Where the system has no thread for the keeper, no lease may be taken.
ledger::KeyLease propose(LeaseKeeper& keeper, const ledger::Scope& scope, const std::string& key) {
  try {
    return keeper.propose(scope, key);
  } catch (const std::system_error& error) {
    throw LeasePending(fmt::format("cannot start a thread to extend its lease: {}", error.what()),
                       kLongestPending);
  }
}

/// Throws LeasePending while its remote service is away, and another message probes it.
RemoteServices::Turn turn_of(const FrameContext& context, const handlers::Binding& binding,
                             const Message& message) {
  const auto& remote = binding.leased->remote();
  if (!context.remote_services || remote.empty())
    return {};
  auto asked = context.remote_services->ask(
      remote, {{std::string(message.topic()), message.partition()}, message.offset()});
  if (const auto* wait = std::get_if<std::chrono::milliseconds>(&asked))
    throw LeasePending(fmt::format("{} is unreachable", remote), *wait);
  return std::get<RemoteServices::Turn>(std::move(asked));
}

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

}  // namespace

std::unique_ptr<LeasedCall> MessageProcessor::prepare_call(postgres::Session& session,
                                                           const MessageStep& step,
                                                           Subject& subject) {
  subject = {};
  next_.reset();
  auto& hand = take_in_hand(session, step);
  emit_step(Step::kMessageFetched, hand);
  find_handler(hand, subject);
  if (subject.binding == nullptr || subject.binding->leased == nullptr ||
      hand.key_text() == nullptr)
    return nullptr;
  subject.key = *hand.key_text();
  return acquire_lease(session, hand);
}

ledger::LeaseAnswer MessageProcessor::ask_for_lease(postgres::Session& session,
                                                    ledger::LeaseRequest& request) const {
  using How = ledger::LeaseAnswer::How;
  auto& keeper = *context_.lease_keeper;
  if (!keeper.may_ask())
    throw LeasePending("no lease is available now", kLongestPending);
  const auto leave = [&] {
    if (request.may_be_given)
      keeper.leave({request.lease, ledger::GivenBack::kNotBegun});
  };
  try {
    auto answer = context_.leases->acquire(session, request);
    // Else nothing had to be written for it.
    if (answer.how == How::kMine || answer.how == How::kDone)
      keeper.reachable().answered();
    return answer;
  } catch (const ledger::LeasesAway& error) {
    leave();
    keeper.reachable().failed(error.what());
    throw LeasePending(error.what(), kLongestPending);
  } catch (...) {
    leave();
    throw;
  }
}

std::unique_ptr<LeasedCall> MessageProcessor::acquire_lease(postgres::Session& session,
                                                            InHand& hand) {
  using How = ledger::LeaseAnswer::How;
  const auto& binding = hand.binding();
  const auto& message = hand.message;
  auto& keeper = *context_.lease_keeper;
  const auto& key = *hand.key_text();
  auto turn = turn_of(context_, binding, message);
  const auto& scope = scopes_.find(session, binding, message.topic(), hand.step->source);
  ledger::LeaseRequest request;
  request.subject = {message::payload_hash(message), hand.step->source, message.partition(),
                     message.offset()};
  request.lease = propose(keeper, scope, key);
  request.message =
      fmt::format("{}[{}]@{}", message.topic(), message.partition(), message.offset());
  request.time = keeper.time();
  request.any_payload = binding.conflict == Conflict::kIgnore;
  request.fence = hand.step->last.fence();
  if (hand.step->last.respects_parking() && binding.may_park(message))
    request.unless_parked = context_.dead_letters.record_key(message);
  const auto asked_at = BootClock::now();
  const auto answer = ask_for_lease(session, request);
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
          fmt::format("an unfinished call for its idempotency key has another payload, that of {}",
                      answer.holder));
    case How::kHeld:
      throw UnknownOutcome(lease_store_changed_halt(key));
    case How::kUnusable:
      throw UnknownOutcome(lease_unreadable_halt(key, answer.holder));
    case How::kMine:
    case How::kDone:
      break;
  }
  emit_step(Step::kLeaseAcquired, hand);
  return std::make_unique<LeasedCall>(
      keeper, binding, message::remote_key(scope.name, key),
      TopicPartition{std::string(message.topic()), message.partition()}, request.subject, answer,
      keeper.hold(request.lease, asked_at), std::move(turn));
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
    emit_step(Step::kCallFinished, hand);
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
    give_back(session, hand, call, call.known(), std::nullopt);
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
  } catch (...) {
    // A `record` in code throws libpqxx's exceptions, where SQL throws ours.
    const auto failure = explain(std::current_exception(), session.alive());
    switch (after_record({.session_alive = session.alive(),
                          .lease_lost = failure.sqlstate == postgres::kLeaseLostState,
                          .failure = failure.kind,
                          .handler_begun = subject.handler_begun,
                          .keeps_responses = context_.leases->keeps_responses()})) {
      case AfterRecord::kRepeat:
        break;
      case AfterRecord::kLost:
        lose_lease(session, hand, call);
      case AfterRecord::kUnplaced:
        record_unplaced(session, hand, call, subject);
        break;
      case AfterRecord::kTaken:
        (void)give_back_or_leave(session, call, ledger::GivenBack::kDone, call.response());
        call.end();
        break;
      case AfterRecord::kGivenBack:
        give_back(session, hand, call, ledger::GivenBack::kDone, call.response());
        break;
    }
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
  } catch (...) {
    if (!session.alive())
      throw;
    if (explain(std::current_exception(), true).sqlstate == postgres::kLeaseLostState)
      lose_lease(session, hand, call);
    // What the caller rethrows follows, whatever failed here: the message is another owner's.
    give_back(session, hand, call, ledger::GivenBack::kDone, call.response());
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
    emit_step(Step::kKeyClaimed, hand);
    emit_step(Step::kHandlerReturned, hand);
    frame.begin_later(std::exchange(request_, {}));
    finish(frame, hand, "", Outcome::kApplied);
    return note_recorded(call);
  }
  const auto answer = begun ? frame.exec(request_) : frame.begin(request_);
  emit_step(Step::kKeyClaimed, hand);
  const auto transaction = ledger::IdempotencyKeys::claimed_by(answer.get());
  if (leased.has_record()) {
    subject.handler_begun = true;
    comment(frame, hand);
    if (const auto trace = message::trace_setting(hand.message); !trace.empty()) {
      context_.keys.name_open_transaction(request_, trace);
      (void)frame.exec(request_);
    }
    frame.runs_code();
    (void)call_handler(session, [&] {
      leased.record(frame, hand.message, call.response());
      return Response{};
    });
  }
  emit_step(Step::kHandlerReturned, hand);
  finish(frame, hand, transaction.value_or(""), Outcome::kApplied);
  note_recorded(call);
}

/// Whoever asks for the key finds it finished, and is not to wait for the lease before that.
void MessageProcessor::note_recorded(const LeasedCall& call) const {
  if (!context_.leases->recorded(call.lease()))
    context_.lease_keeper->leave({call.lease(), ledger::GivenBack::kNotDone});
}

/// False: the lease is not ours any more. Where it cannot be given back now, its keeper does so.
bool MessageProcessor::give_back_or_leave(postgres::Session& session, const LeasedCall& call,
                                          ledger::GivenBack how, const Response& response) const {
  try {
    return context_.leases->give_back(session, call.lease(), how, call.settled(), response);
  } catch (const ledger::LeasesAway&) {
    context_.lease_keeper->leave({call.lease(), how, call.settled(), response});
    return true;
  }
}

void MessageProcessor::give_back(postgres::Session& session, const InHand& hand, LeasedCall& call,
                                 ledger::GivenBack how, const Response& response) {
  const bool may_be_done = how == ledger::GivenBack::kUnknown || how == ledger::GivenBack::kDone;
  if (!give_back_or_leave(session, call, how, response) && may_be_done)
    lose_lease(session, hand, call);
  call.end();
}

/// Key and response, as record_unplaced() stores them: where nothing else keeps what it brought.
void MessageProcessor::record_alone(postgres::Session& session, LeasedCall& call) {
  postgres::Frame frame(session, {});
  context_.leases->record(request_, call.lease(), call.subject(), call.response(),
                          session.durable_commit());
  frame.begin_later(std::exchange(request_, {}));
  context_.keys.name_open_transaction(request_);
  try {
    frame.finish(request_, {});
  } catch (const postgres::InDoubt&) {
    call.note_doubt();
    throw;
  }
  note_recorded(call);
}

void MessageProcessor::let_go_of_call(postgres::Session& session) noexcept {
  if (!call_)
    return;
  const auto call = std::move(call_);
  try {
    if (call->in_doubt() && was_recorded(session, *call))
      return call->end();
    const bool done = call->outcome() == LeasedCall::Outcome::kDone;
    if (done && !context_.leases->keeps_responses() && !call->binding().leased->has_record()) {
      record_alone(session, *call);
      return call->end();
    }
    const bool ours =
        give_back_or_leave(session, *call, call->known(), done ? call->response() : std::nullopt);
    call->end();
    if (!ours && call->may_be_done()) {
      Event event{Step::kWarning};
      event.topic = call->partition().topic;
      event.partition = call->subject().partition;
      event.message_offset = call->subject().offset;
      tell_loss(session, *call, event);
    }
  } catch (const std::exception&) {  // NOLINT(bugprone-empty-catch): its keeper gives it back
  }
}

/// Whether the transaction whose COMMIT got no response has recorded the call.
bool MessageProcessor::was_recorded(postgres::Session& session, const LeasedCall& call) {
  context_.keys.look_up(request_, call.lease().scope.id, call.lease().key);
  const auto found = postgres::run_transaction(session, {std::move(request_)});
  const auto stored = ledger::IdempotencyKeys::read(found.back().get());
  return stored && stored->topic == call.partition().topic &&
         stored->partition == call.partition().partition && stored->offset == call.subject().offset;
}

/// Another attempt may have been made beside this one; what this one brought is not recorded.
void MessageProcessor::lose_lease(postgres::Session& session, const InHand& hand,
                                  LeasedCall& call) {
  if (call.in_doubt() && was_recorded(session, call)) {
    call.end();
    throw postgres::Error(std::string(postgres::kOutOfOrderState),
                          "the message was finished before the connection was lost");
  }
  auto event = event_of(Step::kWarning, hand.message);
  event.message_offset = hand.message.offset();
  tell_loss(session, call, event);
  call.end();
  throw postgres::Error(std::string(postgres::kLeaseLostState),
                        "the lease was lost while the call ran");
}

void MessageProcessor::tell_loss(postgres::Session& session, const LeasedCall& call,
                                 Event event) const {
  const bool returned = call.outcome() == LeasedCall::Outcome::kDone;
  context_.leases->note_loss(session, call.lease(), call.subject(), call.attempt(), returned);
  const auto text = fmt::format(
      "the lease of a call was lost before its outcome was recorded: {}. The call may have been "
      "made twice. Check with the remote service, by the key {}. List lost leases:\n"
      "  {} --lost",
      returned ? "the call had returned" : "the outcome of the call is unknown", call.remote_key(),
      command_text(context_.options.invocation, "calls list"));
  event.handler = call.binding().label;
  event.warning = Warning::kLeaseLost;
  event.key = call.lease().key;
  event.detail = text;
  context_.observers.emit(event);
}

}  // namespace pawl::engine
