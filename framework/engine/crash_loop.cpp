#include "engine/crash_loop.hpp"

#include <fmt/format.h>

#include <utility>

#include "engine/fetch_crashes.hpp"
#include "engine/halt_texts.hpp"

namespace pawl::engine {
namespace {

using Clock = Partition::Clock;

/// How long to wait before asking for the turn again, and whether handlers run.
constexpr std::chrono::milliseconds kTurnRetry{20};
constexpr std::chrono::milliseconds kAloneRetry{2};
/// Handlers that run for longer do not hold up the turn: a crash in one of them may be counted
/// then.
constexpr std::chrono::seconds kHandlersEnd{1};
/// For so long no handler begins, whatever else the worker does meanwhile. Most records arrive, or
/// end the process, in that time.
constexpr std::chrono::seconds kAlone{5};
/// Longer than what a record of gigabytes takes. Without a leader nothing arrives at all.
constexpr std::chrono::seconds kLongestTurn{30};

}  // namespace

bool CrashLoop::may_run(Partition& partition, const ledger::Acquired& acquired) {
  const auto& range = partition.range();
  const auto next = acquired.stored.next();
  const auto& stored = acquired.first_fetch;
  const auto crashes = fetch_crashes(acquired, range && range->end > next,
                                     acquired.previous_owner == context_.owner);
  end_turn(partition);
  partition.first_fetch() = {.crashes = crashes};
  partition.status().fetch_crashes = crashes;
  try {
    const auto& fetches = context_.offsets.first_fetches();
    if (crashes > 0 && (crashes != stored.crashes || next != stored.offset)) {
      fetches.count(*session_, partition.name(), acquired.epoch, next, crashes);
    } else if (crashes == 0 && stored.crashes > 0) {
      fetches.forget(*session_, partition.name(), acquired.epoch);
    }
  } catch (...) {
    consequences_.follow(partition, {Undertaking::kAcquire, session_.why_failed()});
    return false;
  }
  // The first one may have been in a handler.
  if (crashes <= fetch_crashes_before(acquired) || crashes == 1)
    return true;
  const auto most = most_fetch_crashes(context_.options.failures);
  if (crashes < most) {
    partition.warn(Warning::kCrashLoop,
                   fmt::format("{} of at most {} consecutive processes crashed while they fetched "
                               "offset {}. This process fetches only this partition until it has "
                               "the message",
                               crashes, most, next));
    return true;
  }
  consequences_.halt(partition, fetch_crashed_halt(next, crashes));
  return false;
}

bool CrashLoop::begin(Partition& partition) {
  auto& fetch = partition.first_fetch();
  if (fetch.crashes == 0 || fetch.arrived || fetch.fetched_since)
    return true;
  if (!context_.fetch_turn.take(&partition, Clock::now())) {
    partition.wait(kTurnRetry);
    return false;
  }
  if (!is_alone(partition)) {
    partition.wait(kAloneRetry);
    return false;
  }
  try {
    if (context_.offsets.first_fetches().mark(*session_, partition.name(), *partition.held().epoch,
                                              context_.owner)) {
      fetch.fetched_since = Clock::now();
      return true;
    }
  } catch (...) {
    // The answer to COMMIT may be lost.
    marks_.remember(partition);
    end_turn(partition);
    consequences_.follow(partition, {Undertaking::kAcquire, session_.why_failed()});
    return false;
  }
  end_turn(partition);
  consequences_.give_way(partition);
  return false;
}

/// A handler that ends the process meanwhile would be taken for the fetch.
bool CrashLoop::is_alone(Partition& partition) {
  auto& fetch = partition.first_fetch();
  const auto now = Clock::now();
  if (!fetch.turn_since)
    fetch.turn_since = now;
  if (!fetch.alone)
    fetch.alone = context_.gate.alone(partition.name(), now + kAlone);
  return fetch.alone || now - *fetch.turn_since > kHandlersEnd;
}

void CrashLoop::arrived(Partition& partition) {
  auto& fetch = partition.first_fetch();
  if (!std::exchange(fetch.arrived, true))
    partition.status().begun_in = static_cast<std::int64_t>(*partition.held().epoch);
  partition.status().fetch_crashes = 0;
  end_turn(partition);
}

void CrashLoop::watch(Partition& partition) {
  auto& fetch = partition.first_fetch();
  if (!fetch.turn_since)
    return;
  const auto now = Clock::now();
  if (!partition.running() && partition.phase() != Phase::kPositioning) {
    end_turn(partition);
  } else if (fetch.fetched_since && now - *fetch.fetched_since > kLongestTurn) {
    partition.rest(kLongestTurn);
    end_turn(partition);
  }
}

void CrashLoop::leave(Partition& partition, bool cleanly) {
  end_turn(partition);
  const auto& fetch = partition.first_fetch();
  const auto& epoch = partition.held().epoch;
  if (!cleanly || fetch.crashes == 0 || !fetch.arrived || !epoch || !session_.alive())
    return;
  try {
    context_.offsets.first_fetches().forget(*session_, partition.name(), *epoch);
  } catch (const std::exception&) {
    session_.notice_failure(Warning::kReleaseNotStored,
                            "cannot store that this process released the partition");
  }
}

void CrashLoop::note_begun() {
  std::map<TopicPartition, ledger::OwnerEpoch> begun;
  const auto partitions = context_.board.all();
  for (const auto& status : partitions) {
    const auto epoch = status->begun_in.load();
    if (epoch != status->begun_noted)
      begun.emplace(status->partition, ledger::OwnerEpoch{epoch});
  }
  if (begun.empty())
    return;
  context_.offsets.first_fetches().note_begun(*session_, begun);
  for (const auto& status : partitions) {
    const auto noted = begun.find(status->partition);
    if (noted != begun.end())
      status->begun_noted = static_cast<std::int64_t>(noted->second);
  }
}

/// First the mark goes: what runs next may end the process.
void CrashLoop::end_turn(Partition& partition) {
  auto& fetch = partition.first_fetch();
  if (!fetch.turn_since)
    return;
  if (std::exchange(fetch.fetched_since, std::nullopt))
    marks_.remove(partition);
  fetch.turn_since.reset();
  fetch.alone = {};
  context_.fetch_turn.give_back(&partition, Clock::now());
}

}  // namespace pawl::engine
