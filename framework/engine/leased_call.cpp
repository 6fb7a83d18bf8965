#include "engine/leased_call.hpp"

#include <utility>

#include "engine/halt_texts.hpp"
#include "message/message_error.hpp"
#include "pawl/errors.hpp"

namespace pawl::engine {
namespace {

/// Another lease is asked for then.
constexpr std::chrono::milliseconds kSoon{100};

}  // namespace

Beginning beginning_of(OnUnknown on_unknown, std::optional<std::chrono::milliseconds> unknown_for,
                       std::chrono::milliseconds remote_memory) {
  if (!unknown_for)
    return Beginning::kCall;
  switch (on_unknown) {
    case OnUnknown::kReconcile:
      return Beginning::kReconcile;
    case OnUnknown::kHalt:
      return Beginning::kHalt;
    case OnUnknown::kCall:
      break;
  }
  const bool forgotten = remote_memory.count() > 0 && *unknown_for > remote_memory;
  return forgotten ? Beginning::kHalt : Beginning::kCall;
}

LeasedCall::LeasedCall(LeaseKeeper& keeper, const handlers::Binding& binding,
                       std::string remote_key, TopicPartition partition,
                       const ledger::LeaseSubject& subject, const ledger::LeaseAnswer& answer,
                       std::shared_ptr<HeldLease> held, RemoteServices::Turn turn)
    : keeper_(keeper),
      binding_(binding),
      remote_key_(std::move(remote_key)),
      partition_(std::move(partition)),
      subject_(subject),
      attempt_(answer.attempt),
      unknown_for_(answer.unknown_for),
      last_ago_(answer.last_ago),
      held_(std::move(held)),
      turn_(std::move(turn)) {
  if (answer.how != ledger::LeaseAnswer::How::kDone)
    return;
  outcome_ = Outcome::kDone;
  response_ = answer.response;
  // It calls nothing, and may wait for long to be stored.
  turn_ = {};
}

LeasedCall::~LeasedCall() {
  if (ended_)
    return;
  // In PostgreSQL the row of the lease is gone if the call was recorded. Redis does not know it.
  if (!in_doubt_ || keeper_.keeps_responses())
    keeper_.leave({lease(), known(), settled_, response_});
}

ledger::GivenBack LeasedCall::known() const {
  switch (outcome_) {
    case Outcome::kDone:
      return ledger::GivenBack::kDone;
    case Outcome::kNotDone:
      return ledger::GivenBack::kNotDone;
    case Outcome::kNone:
    case Outcome::kNotBegun:
      return ledger::GivenBack::kNotBegun;
    case Outcome::kUnknown:
      break;
  }
  return ledger::GivenBack::kUnknown;
}

Lease LeasedCall::lease_for(std::chrono::steady_clock::time_point deadline) const {
  return Lease({.key = remote_key_,
                .attempt = attempt_,
                .earlier_attempt_unknown = unknown_for_ && !settled_,
                .last_attempt_ago = last_ago_,
                .deadline = deadline,
                .stop_token = held_->stop_token()});
}

void LeasedCall::run(const Message& message) noexcept {
  if (outcome_ != Outcome::kNone)
    return;
  outcome_ = Outcome::kNotBegun;
  const auto begun = std::chrono::steady_clock::now();
  try {
    call(message);
  } catch (const handlers::RemoteOutage& outage) {
    not_done(after(outage));
  } catch (const handlers::NotDoneThere&) {
    turn_.responded(false);
    not_done(std::current_exception());
  } catch (const NotDone&) {
    not_done(std::current_exception());
  } catch (const message::MessageError&) {
    not_done(std::current_exception());
  } catch (const PermanentError&) {
    turn_.responded(false);
    not_done(std::current_exception());
  } catch (const UnknownOutcome&) {
    error_ = std::current_exception();
  } catch (const LeasePending&) {
    error_ = std::current_exception();
  } catch (const handlers::UnknownAnswer&) {
    turn_.responded(false);
    error_ = std::current_exception();
  } catch (const std::exception& error) {
    // Whatever it says, it is not of our servers.
    error_ = std::make_exception_ptr(handlers::UnknownAnswer(error.what()));
  } catch (...) {  // code's may be anything
    error_ = std::current_exception();
  }
  turn_ = {};
  took_ = std::chrono::steady_clock::now() - begun;
  // That is no fault of the message, nor of the other side.
  if (outcome_ == Outcome::kUnknown && keeper_.was_cut(*held_)) {
    error_ = std::make_exception_ptr(
        LeasePending("its call was aborted, because its lease could not be extended", kSoon));
  }
  keeper_.ended(*held_);
}

void LeasedCall::not_done(std::exception_ptr error) {
  if (outcome_ == Outcome::kUnknown)
    outcome_ = Outcome::kNotDone;
  error_ = std::move(error);
}

/// What its message meets in the outage, in the current exception.
std::exception_ptr LeasedCall::after(const handlers::RemoteOutage& outage) {
  FailedCall failed;
  failed.by_status = outage.by_status();
  failed.retry_for = binding_.failures.retry_for;
  const auto wait = turn_.failed(failed, outage.what(), outage.retry_after());
  return wait ? std::make_exception_ptr(LeasePending(outage.what(), *wait))
              : std::current_exception();
}

void LeasedCall::require_lease(std::chrono::steady_clock::time_point deadline) {
  if (!keeper_.begin(*held_, deadline))
    throw LeasePending("the lease of the key expired before the call started", kSoon);
}

/// Leaves in outcome_ what an exception means.
void LeasedCall::call(const Message& message) {
  const auto deadline = std::chrono::steady_clock::now() + binding_.frame.statement_timeout;
  require_lease(deadline);
  switch (beginning_of(binding_.on_unknown, unknown_for_, binding_.remote_memory)) {
    case Beginning::kHalt:
      throw UnknownOutcome(unknown_outcome_halt(lease().key, remote_key_, *unknown_for_));
    case Beginning::kReconcile: {
      auto lease = lease_for(deadline);
      const auto found = binding_.leased->reconcile(lease, message);
      if (found.how() == Found::How::kUnknown) {
        throw NotDone("the remote service does not know yet whether an earlier call succeeded");
      }
      if (found.how() == Found::How::kDone) {
        response_ = found.response();
        outcome_ = Outcome::kDone;
        return;
      }
      settled_ = true;
      break;
    }
    case Beginning::kCall:
      break;
  }
  require_lease(deadline);
  auto lease = lease_for(deadline);
  outcome_ = Outcome::kUnknown;
  response_ = binding_.leased->call(lease, message);
  turn_.responded(true);
  outcome_ = Outcome::kDone;
}

}  // namespace pawl::engine
