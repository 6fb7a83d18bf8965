// What a worker does with messages whose handlers say their statements ahead: they travel to the
// server together, each in a transaction of its own. Whatever is not plain is left to the one way
// that takes a message alone (worker_partitions.cpp), which finds out what is the matter and deals
// with it.
#include <fmt/format.h>

#include <algorithm>

#include "engine/worker.hpp"

namespace pawl::engine {
namespace {

using std::chrono::milliseconds;

/// A flight is as long as its messages take this time: a revocation waits for it, and so does a
/// message on probation in another partition.
constexpr milliseconds kLongestFlight{100};
constexpr std::size_t kShortestFlight = 2;
constexpr std::size_t kAloneAfterNone = 4;
constexpr std::size_t kMostAloneAfterNone = 256;

}  // namespace

bool Worker::pipelines(const Partition& partition) const {
  return context_.options.consumer.pipeline > 1 && !session_->pooled() &&
         context_.router.pipelines(partition.name().topic);
}

/// False: the message at hand goes alone.
bool Worker::fly(Partition& partition) {
  if (partition.alone > 0 || !partition.head_is_plain() || partition.buffer.size() < 2 ||
      !pipelines(partition))
    return false;
  processor_.settle();
  // Filling may already run code of the handler's.
  const auto pass = ask_to_run(partition);
  if (!pass)
    return true;
  try {
    const auto begun = Clock::now();
    // Two messages may take that long, and more than two travel only where they are fast.
    begin_call(partition, context_.longest_handler * 2);
    fill_flight(partition, begun + kLongestFlight);
    if (flight_.size() < 2) {
      end_call();
      return false;
    }
    std::function<void()> sent;
    if (context_.observers.every_step())
      sent = [&] {
        for (std::size_t i = 0; i < flight_.size(); ++i)
          emit(Step::kCommitting, partition, flight_.message(i).offset());
      };
    const auto landed = flight_.run(*session_, sent);
    end_call();
    size_flights(partition, landed, Clock::now() - begun);
    land(partition, landed);
  } catch (...) {
    end_call();
    Attempt attempt{Undertaking::kPipeline, why_failed()};
    attempt.offset = partition.buffer.front().record.offset();
    attempt.messages = flight_.size();
    // The statements of all of them were on their way.
    attempt.handler_begun = true;
    if (attempt.failure.kind == postgres::FailureClass::kConnection)
      partition.flight_size = kShortestFlight;
    failed(partition, attempt);
  }
  return true;
}

/// Two messages at least where two can go together, and no more once it has taken too long.
void Worker::fill_flight(const Partition& partition, Clock::time_point until) {
  flight_.clear();
  auto leader_epoch = partition.leader_epoch;
  for (const auto& item : partition.buffer) {
    if (flight_.size() >= partition.flight_size ||
        item.record.kind() != kafka::Record::Kind::kMessage)
      return;
    if (flight_.size() >= kShortestFlight && Clock::now() > until)
      return;
    if (goes_back(leader_epoch, item.leader_epoch))
      return;
    leader_epoch = item.leader_epoch;
    const auto message = item.record.view(partition.name().topic, partition.topic_id);
    if (!flight_.add(message, partition.name(), partition.source,
                     advance_of(partition, item, message)))
      return;
    if (context_.observers.every_step())
      emit(Step::kFetched, partition, message.offset());
  }
}

/// Longer while all goes well, shorter where it does not or where it takes long.
void Worker::size_flights(Partition& partition, const MessageFlight::Landed& landed,
                          Clock::duration took) const {
  const auto most = static_cast<std::size_t>(context_.options.consumer.pipeline);
  auto size = partition.flight_size;
  if (!landed.complete) {
    size /= 2;
  } else if (landed.stored == size) {
    size *= 2;
  }
  if (took > kLongestFlight && landed.stored > 0) {
    const auto fitting = static_cast<std::size_t>(landed.stored * kLongestFlight / took);
    size = std::min(size, fitting);
  }
  partition.flight_size = std::clamp(size, std::min(kShortestFlight, most), most);
}

void Worker::land(Partition& partition, const MessageFlight::Landed& landed) {
  for (std::size_t i = 0; i < landed.stored; ++i) {
    const bool applied = flight_.outcome(i) == ledger::Outcome::kApplied;
    if (applied)
      context_.breaker.applied(flight_.handler(i));
    auto event = event_of(applied ? Step::kCommitted : Step::kDuplicate, flight_.message(i));
    event.key = flight_.key(i);
    event.handler = flight_.handler(i);
    context_.observers.emit(event);
    moved_past(partition);
  }
  // The next one says itself what is the matter with it. Where not even one could go, as behind a
  // parked record key, those behind it are likely to be like it, and the more so the more often.
  if (landed.stored > 0)
    partition.alone_after_none = kAloneAfterNone;
  if (landed.complete)
    return;
  partition.alone = 1;
  if (landed.stored == 0) {
    partition.alone = std::max(partition.alone_after_none, kAloneAfterNone);
    partition.alone_after_none = std::min(partition.alone * 2, kMostAloneAfterNone);
  }
}

}  // namespace pawl::engine
