#include "engine/probation.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "dead_letters/store/dead_letters.hpp"
#include "engine/message_key.hpp"
#include "engine/order_of.hpp"
#include "text/count.hpp"

namespace pawl::engine {

namespace {

/// How long after an acquire the suspects of a partition wait for the one that goes first to run.
constexpr std::chrono::minutes kLongestForFirst{1};

}  // namespace

void Probation::consider(Partition& partition, const ledger::Acquired& acquired) {
  // Our own session may have been lost, or an operator have changed something: no process ended.
  if (acquired.previous_owner == context_.owner && !acquired.released)
    return;
  partition.suspects() = {};
  partition.status().on_probation = false;
  // With nothing left in the log nothing was running.
  const auto& range = partition.range();
  if ((acquired.released && !acquired.suspects_left) || !range ||
      range->end <= acquired.stored.next())
    return;
  const auto& bound = context_.router.bound_to(partition.name().topic);
  const auto any = [&](auto has) {
    return std::ranges::any_of(bound, [&](const auto* binding) { return has(*binding); });
  };
  if (!any([](const auto& binding) { return binding.runs_code(); }) || !ended(acquired))
    return;
  const bool calls_with_code = any([](const auto& binding) { return binding.lease_tells(); });
  const auto& plan = context_.router.plan_of(partition.name().topic);
  partition.suspects() = SuspectChoice({.end = range->end,
                                        .at_once = plan.most_in_hand,
                                        .ahead = plan.max_ahead,
                                        .side_by_side = partition.ahead().together(),
                                        .calls_with_code = calls_with_code});
  if (const auto first = marked_before(partition); first && *first < range->end)
    partition.suspects().go_first(*first, false);
  partition.suspects().passed(acquired.stored.last());
  partition.status().on_probation = true;
  partition.tell(
      Step::kProbationStarted, acquired.stored.last(),
      fmt::format(
          "{} {}. The messages that it may have been processing, up to {}{}, are processed alone, "
          "one after another. Meanwhile all other messages of this process wait, up to {} ms at a "
          "time or as long as one of them takes. No action needed",
          acquired.previous_owner,
          acquired.suspects_left ? "gave this partition back while it was on probation"
                                 : "stopped without giving this partition back",
          plan.most_in_hand, calls_with_code ? " and the calls that were started" : "",
          SuspectTurns::kTurn.count()));
}

/// Whether the owner before runs no message of it any more: it ended, or gave the partition back.
bool Probation::ended(const ledger::Acquired& acquired) {
  if (!acquired.previous_backend)
    return true;
  try {
    return !context_.suspects.is_alive(*session_, *acquired.previous_backend);
  } catch (const std::exception&) {
    // A lost session is noticed at its next use.
    return true;
  }
}

/// In the log's order that one stands first.
std::optional<std::int64_t> Probation::marked_before(const Partition& partition) {
  if (!partition.ahead().together())
    return std::nullopt;
  try {
    return context_.suspects.marked(*session_, partition.name());
  } catch (const std::exception&) {
    // A lost session is noticed at its next use.
    return std::nullopt;
  }
}

void Probation::tell_end(Partition& partition) {
  if (const auto ran = partition.suspects().take_end()) {
    partition.status().on_probation = false;
    partition.tell(Step::kProbationEnded, partition.held().stored.last(),
                   texts::counted(static_cast<std::int64_t>(*ran), "message was processed alone",
                                  "messages were processed alone"));
  }
}

void Probation::consider_next(Partition& partition) {
  auto& suspects = partition.suspects();
  tell_end(partition);
  const auto& inbox = partition.inbox();
  if (inbox.empty() || !inbox.front().is_message())
    return;
  const auto offset = inbox.front().record.offset();
  if (!suspects.knows(offset) && is_suspect(partition, inbox.front()))
    suspects.add(offset);
}

bool Probation::is_suspect(Partition& partition, const Inbox::Item& item) {
  const auto message = partition.view(item);
  message::JsonView json(reader_, message);
  auto order = order_of(context_.router, message, json, partition.ahead().together());
  SuspectChoice::Candidate candidate{.offset = item.record.offset(), .handler = order.binding};
  candidate.order_key = std::move(order.key);
  if (order.binding != nullptr) {
    candidate.liability = order.binding->liability;
    candidate.calls = order.binding->leased != nullptr;
    candidate.lease_tells = order.binding->lease_tells();
    candidate.concurrency = order.binding->concurrency;
  }
  switch (partition.suspects().ask(candidate)) {
    case SuspectChoice::Answer::kNo:
      return false;
    case SuspectChoice::Answer::kYes:
      return true;
    case SuspectChoice::Answer::kIfCalled:
      break;
  }
  return was_called(partition, *order.binding, message, json);
}

/// Whether another process has an attempt of the message's call. It need not be the partition's
/// last owner: that one may have ended in order while the message was still on probation.
bool Probation::was_called(Partition& partition, const handlers::Binding& binding,
                           const Message& message, message::JsonView& json) {
  try {
    const auto key = derive_key(binding, message, json);
    const auto* const found = std::get_if<Key>(&key);
    if (found == nullptr)
      return false;
    const auto& scope =
        processor_.scopes().find(*session_, binding, message.topic(), partition.held().source);
    const auto owner = context_.frame.leases->attempted_by(*session_, scope, found->text);
    return owner && *owner != context_.owner;
  } catch (const std::exception&) {
    // A lost session is noticed at its next use. Redis is asked once only where it does not
    // respond: its timeout for each message would keep the worker from its partitions.
    if (session_.alive())
      partition.suspects().stop_asking();
    return true;
  }
}

RunGate::Pass Probation::ask_to_run(Partition& partition, bool runs_code) {
  if (!runs_code)
    return context_.gate.beside_all();
  auto pass = partition.first_is_suspect() ? context_.gate.alone(partition.name())
                                           : context_.gate.among_others();
  if (!pass)
    partition.wait(kGateRetry);
  return pass;
}

RunGate::Pass Probation::ask_to_run_alone(Partition& partition, std::int64_t offset) {
  auto& suspects = partition.suspects();
  if (RunGate::Clock::now() - partition.ahead().held()->acquired_at > kLongestForFirst)
    suspects.give_up_first();
  return suspects.waits(offset) ? RunGate::Pass{} : context_.gate.alone(partition.name());
}

void Probation::note_end(Partition& partition, std::int64_t offset, bool passed) {
  end(partition, passed);
  if (!passed)
    return;
  partition.suspects().finished(offset);
  tell_end(partition);
}

bool Probation::mark(Partition& partition) {
  const auto& item = partition.inbox().front();
  const auto offset = item.record.offset();
  auto marked = mark(partition, item);
  if (!marked.failed)
    return marked.stands;
  Attempt attempt{Undertaking::kMessage, *std::move(marked.failed)};
  attempt.offset = offset;
  attempt.subject = identify(context_.router, partition.view(item));
  attempt.counted = true;  // by the marks
  consequences_.follow(partition, attempt);
  if (partition.held().stored.last() >= offset)
    end(partition, true);
  return false;
}

Probation::Marked Probation::mark(Partition& partition, const Inbox::Item& item) {
  const auto offset = item.record.offset();
  Attempt attempt{Undertaking::kMessage};
  attempt.offset = offset;
  attempt.subject = identify(context_.router, partition.view(item));
  const auto most = consequences_.options_of(attempt).max_crashes;
  std::optional<std::uint32_t> crashes;
  try {
    crashes = context_.suspects.mark(*session_, partition.name(), *partition.held().epoch, offset,
                                     context_.owner, most);
  } catch (...) {
    // The answer to COMMIT may be lost.
    marks_.remember(partition);
    attempt.what = Undertaking::kNote;
    attempt.failure = session_.why_failed();
    consequences_.follow(partition, attempt);
    return {};
  }
  if (!crashes) {
    consequences_.give_way(partition);
    return {};
  }
  if (*crashes > 0) {
    partition.suspects().go_first(offset, true);
  } else {
    partition.suspects().went_first(offset);
  }
  if (*crashes > 0 && *crashes < most) {
    partition.tell(
        Step::kProbationAttemptCrashed, offset,
        fmt::format("{} while processing only this message; the limit is {}. Retrying it alone",
                    texts::counted(*crashes, "process crashed", "processes crashed"), most));
  }
  if (*crashes < most)
    return {.stands = true, .failed = std::nullopt};
  Failure failure;
  failure.permanent = true;
  failure.reason = ledger::dead_reason::kCrash;
  failure.text = texts::counted(*crashes, "process crashed", "processes crashed") +
                 " while processing only this message";
  partition.tell(Step::kProbationAttemptCrashed, offset, failure.text);
  return {.stands = true, .failed = std::move(failure)};
}

}  // namespace pawl::engine
