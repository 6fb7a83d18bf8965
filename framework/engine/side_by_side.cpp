#include "engine/side_by_side.hpp"

#include <limits>
#include <utility>

#include "engine/halt_texts.hpp"
#include "engine/order_of.hpp"

namespace pawl::engine {
namespace {

/// How long the stored offset stays behind messages that are finished.
constexpr std::chrono::milliseconds kPassInterval{50};

bool is_end(const Inbox::Item& item) {
  return item.record.kind() == kafka::Record::Kind::kEndOfLog;
}

}  // namespace

SideBySide::SideBySide(Context& context, WorkerSession& session, Consequences& consequences,
                       Probation& probation, Runner& runner, Mailbox& mailbox, Find find)
    : context_(context),
      session_(session),
      consequences_(consequences),
      probation_(probation),
      runner_(runner),
      mailbox_(mailbox),
      find_(std::move(find)) {}

bool SideBySide::turn(Partition& partition, const std::function<bool()>& called_away) {
  if (partition.ahead().halt_wanted())
    return halt_as_wanted(partition);
  // First the hands get work: to move the stored offset waits for the disk.
  bool worked = fill(partition, called_away);
  if (!session_ || !partition.running() || !partition.is_due(Clock::now()))
    return true;
  worked = begin(partition, std::numeric_limits<std::int64_t>::max()) || worked;
  // A suspect's mark may have failed.
  if (!session_ || !partition.running())
    return true;
  if (is_due_to_pass(partition)) {
    pass(partition);
    return true;
  }
  if (!worked)
    make_room(partition);
  return worked;
}

/// While nothing of the window can run for long, what has not begun is left to Kafka.
void SideBySide::make_room(Partition& partition) {
  const auto& ahead = partition.ahead();
  const auto& window = ahead.window();
  if (!ahead.is_closed() || window.running() > 0 || window.prefix() > 0)
    return;
  const bool has_some = window.full() || window.unbegun() > 0 ||
                        (!window.empty() && partition.inbox().up_to_last_message() > 0);
  const auto due = ahead.due();
  if (has_some && due)
    partition.make_room(*due);
}

/// Takes what has been fetched into the window, up to what may be begun. False: nothing was done.
bool SideBySide::fill(Partition& partition, const std::function<bool()>& called_away) {
  auto& ahead = partition.ahead();
  auto& window = ahead.window();
  bool worked = false;
  while (!window.full() && !called_away()) {
    // An end of the log waits for all before it, unless there is more behind it.
    const auto& inbox = partition.inbox();
    const bool only_end = inbox.size() == 1 && is_end(inbox.front()) && !window.empty();
    if ((inbox.empty() || only_end) && !runner_.take(partition, AheadOfOffset::kMostTaken))
      break;
    const auto& item = inbox.front();
    if (is_end(item) && inbox.size() > 1 && !window.empty()) {
      // What is behind it may not come into this window, and names it as what comes before.
      if (!ahead.together())
        break;
      partition.skip_end();
      worked = true;
      continue;
    }
    const auto known = item.is_message() ? ahead.known(item.record.offset()) : nullptr;
    const bool same = known != nullptr && ahead.is_same(*known, item);
    const bool finished = same && known->outcome;
    if (finished) {
      partition.suspects().finished(item.record.offset());
    } else {
      probation_.consider_next(partition);
    }
    const bool replaced = known != nullptr && known->outcome && !same;
    const auto place = finished   ? Place::kWindow
                       : replaced ? Place::kAlone
                                  : place_of(partition, item);
    if (place != Place::kWindow) {
      if (!window.empty() || place == Place::kRunner) {
        // It waits for the suspects of the window, so these do not wait for it.
        partition.suspects().went_first(item.record.offset());
        break;
      }
      if (replaced) {
        consequences_.halt(partition, completed_record_replaced_halt(item));
        return true;
      }
      worked = true;
      if (same)
        partition.head().counted_ahead = known->attempts;
      if (item.is_message() && ahead.is_suspect(item.record.offset())) {
        ahead.absolve(item.record.offset());
        partition.head().broke_connection = item.record.offset();
      }
      if (!run_front_alone(partition, called_away))
        return true;
      continue;
    }
    const auto entry = make_entry(partition, partition.take_front());
    if (finished) {
      entry->outcome = known->outcome;
    } else if (same) {
      entry->head.attempts = known->attempts;
    }
    // As the register compares, where it is asked about each message.
    if (!ahead.add(entry, partition.held().stored)) {
      partition.acquire_again(false);
      return true;
    }
    worked = true;
  }
  return worked;
}

SideBySide::Place SideBySide::place_of(const Partition& partition, const Inbox::Item& item) {
  const auto& ahead = partition.ahead();
  // In the log's order only calls leave this thread. Once nothing is known any more of what is
  // ahead of the stored offset the others go together again.
  if (!ahead.together() && !runner_.is_call_next(partition))
    return ahead.is_used() ? Place::kAlone : Place::kRunner;
  const bool known_alone =
      !item.is_message() ||
      goes_back(ahead.leader_epoch(partition.held().leader_epoch), item.leader_epoch) ||
      !partition.head().is_plain() || ahead.is_suspect(item.record.offset()) ||
      (partition.first_is_suspect() && runner_.is_call_next(partition));
  return known_alone ? Place::kAlone : Place::kWindow;
}

/// As in any partition. False: the partition may not go on now, or it is the turn of others: those
/// of this worker must ask for it.
bool SideBySide::run_front_alone(Partition& partition, const std::function<bool()>& called_away) {
  const auto before = partition.held().stored;
  const bool suspect = partition.first_is_suspect();
  runner_.turn_alone(partition);
  return !suspect && session_ && partition.running() && partition.is_due(Clock::now()) &&
         !called_away() && (partition.held().stored != before || partition.inbox().empty());
}

Window::Entry SideBySide::make_entry(const Partition& partition, Inbox::Item item) {
  auto entry =
      std::make_shared<InWindow>(InWindow{.stream = partition.stream(), .item = std::move(item)});
  const auto message = partition.view(entry->item);
  message::JsonView json(reader_, message);
  auto order = order_of(context_.router, message, json, partition.ahead().together());
  entry->binding = order.binding;
  entry->order_key = std::move(order.key);
  entry->suspect = partition.suspects().has(entry->offset());
  return entry;
}

/// Gives to the hands what may begin. False: nothing may.
bool SideBySide::begin(Partition& partition, std::int64_t below) {
  auto& ahead = partition.ahead();
  bool worked = false;
  const auto now = Clock::now();
  while (ahead.contention().lets_begin(now, ahead.window().running())) {
    auto entry = ahead.window().next(now, below);
    if (!entry)
      break;
    const bool suspect = entry->suspect;
    auto errand = make_errand(partition, std::move(entry));
    if (suspect && !mark_suspect(partition, errand)) {
      if (!session_ || !partition.running() || !partition.is_due(Clock::now()))
        return true;
      continue;
    }
    worked = true;
    context_.hands->give(std::move(errand));
  }
  return worked;
}

Errand SideBySide::make_errand(Partition& partition, Window::Entry entry) {
  return {partition.ahead().held(), std::move(entry),
          [this](const Errand& errand, const Landing& landing) {
            mailbox_.post_note([this, errand, landing] {
              auto* const found = find_(errand.partition->name);
              if (errand.alone)
                end_suspect(found, errand, landing);
              if (found == nullptr)
                return;
              // Also where another message of the partition was heard of before.
              if (landing.suspect)
                found->ahead().suspect(errand.entry->offset());
              if (!errand.entry->dropped)
                landed(*found, errand, landing);
            });
          }};
}

/// Leaves the suspect's mark. False: it does not run now.
bool SideBySide::mark_suspect(Partition& partition, Errand& errand) {
  const auto& entry = errand.entry;
  if (auto pass = probation_.ask_to_run_alone(partition, entry->offset())) {
    errand.alone = std::make_shared<RunGate::Pass>(std::move(pass));
    auto marked = probation_.mark(partition, entry->item);
    errand.failed = std::move(marked.failed);
    if (marked.stands)
      return true;
  }
  if (!entry->dropped)
    partition.ahead().window().later(entry, Clock::now() + Probation::kGateRetry);
  return false;
}

/// First the mark goes: other code runs then, which may end the process.
void SideBySide::end_suspect(Partition* partition, const Errand& errand, const Landing& landing) {
  const auto offset = errand.entry->offset();
  if (partition == nullptr) {
    probation_.end_after_leaving(errand.partition->name);
  } else {
    probation_.note_end(*partition, offset, landing.how == Landing::How::kFinished);
    // It runs no more; before that others run.
    if (landing.how == Landing::How::kHalt)
      partition->suspects().went_first(offset);
  }
  *errand.alone = {};
}

void SideBySide::landed(Partition& partition, const Errand& errand, const Landing& landing) {
  auto& ahead = partition.ahead();
  const auto& entry = errand.entry;
  const auto wait = wait_after(landing, errand.given, Clock::now(), context_.options.failures,
                               ahead.contention(), entry->lock_waits);
  switch (landing.how) {
    case Landing::How::kFinished:
      ahead.window().finished(entry, landing.outcome);
      return;
    case Landing::How::kLater:
      ahead.window().later(entry, Clock::now() + wait);
      return;
    case Landing::How::kHalt:
      ahead.window().halted(entry);
      ahead.want_halt(landing.halt);
      return;
    case Landing::How::kGiveWay:
      consequences_.give_way(partition, landing.why);
      return;
    case Landing::How::kAskAgain:
      partition.acquire_again(false);
      return;
    case Landing::How::kLost:
      partition.acquire_again(true);
      return;
  }
}

bool SideBySide::is_due_to_pass(const Partition& partition) const {
  const auto& ahead = partition.ahead();
  const auto& window = ahead.window();
  return window.prefix() > 0 &&
         (window.prefix() == window.size() || window.full() || Clock::now() >= ahead.next_pass());
}

/// Moves the stored offset over the first messages, which are finished. False: it failed, and that
/// is dealt with.
bool SideBySide::pass(Partition& partition) {
  auto& ahead = partition.ahead();
  const auto& window = ahead.window();
  const auto count = window.prefix();
  const auto& last = window[count - 1].item;
  ledger::Passing passing;
  passing.fence = ahead.held()->fence();
  passing.from = partition.held().stored;
  passing.to = ledger::Position::behind(last.record.offset());
  passing.messages = static_cast<std::int64_t>(count);
  passing.halted = partition.head().row_halted;
  passing.leader_epoch = last.leader_epoch;
  passing.timestamp = partition.view(last).timestamp();
  try {
    context_.offsets.ahead().pass(*session_, partition.name(), passing,
                                  context_.options.consumer.durability != Durability::kReplayable);
  } catch (...) {
    Attempt attempt{Undertaking::kNote, session_.why_failed()};
    attempt.offset = window[0].offset();
    consequences_.follow(partition, attempt);
    return false;
  }
  partition.passed_ahead(count, Clock::now() + kPassInterval);
  return true;
}

/// Nothing behind that message is begun since. Once it is the first that is not finished, and all
/// that was begun has come back, what is finished is stored, and the halt.
bool SideBySide::halt_as_wanted(Partition& partition) {
  auto& ahead = partition.ahead();
  const auto& window = ahead.window();
  const bool worked = begin(partition, ahead.halt_offset());
  // A suspect's mark may have failed.
  if (!session_ || !partition.running())
    return true;
  const bool comes_first =
      window.running() == 0 && window[window.prefix()].offset() == ahead.halt_offset();
  if (!comes_first && !is_due_to_pass(partition))
    return worked;
  if (window.prefix() > 0 && !pass(partition))
    return true;
  if (!comes_first)
    return true;
  const auto wanted = *ahead.take_halt();
  consequences_.halt_after_attempt(partition, wanted);
  // What is finished behind it the register knows.
  if (partition.running()) {
    partition.acquire_again(false);
    if (wanted.retry_after)
      partition.wait(*wanted.retry_after);
  }
  return true;
}

bool SideBySide::wind_up(Partition& partition) {
  auto& ahead = partition.ahead();
  if (!ahead.winding_up()) {
    ahead.wind_up();
    context_.hands->take_back(ahead.held().get());
  }
  if (!partition.held_here() || !session_)
    return true;
  if (ahead.window().running() > 0)
    return false;
  if (ahead.window().prefix() > 0)
    pass(partition);
  return true;
}

}  // namespace pawl::engine
