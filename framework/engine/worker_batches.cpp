// What a worker does with messages whose handler takes batches: many in one transaction, and what
// is not plain, or has failed, one at a time (docs/batches.md).
#include <fmt/format.h>

#include <utility>

#include "engine/worker.hpp"

namespace pawl::engine {
namespace {

/// While a batch lingers its messages are looked at so often.
constexpr int kLooks = 16;
constexpr std::chrono::milliseconds kShortestPause{1};

}  // namespace

Worker::BatchTurn Worker::run_batch(Partition& partition) {
  if (!may_batch(partition))
    return BatchTurn::kNone;
  const auto filled = fill_buffer(partition);
  if (filled == Filled::kGone) {
    processor_.settle();
    return BatchTurn::kRan;
  }
  // Each look at what waits runs the keys' code anew.
  if (filled == Filled::kPartly && partition.linger &&
      Clock::now() < partition.linger->look_again) {
    processor_.settle();
    return BatchTurn::kWaits;
  }
  // Collecting may already run code of the handler's.
  const auto pass = ask_to_run(partition);
  if (!pass)
    return BatchTurn::kRan;
  const auto begun = Clock::now();
  begin_call(partition, context_.longest_handler);
  const auto items = collect_batch(partition, begun + context_.longest_batch);
  end_call();
  if (lingers(partition, filled, items)) {
    processor_.settle();
    return BatchTurn::kWaits;
  }
  if (batches_.size() < 2)
    return BatchTurn::kNone;
  processor_.settle();
  apply_batch(partition, items, begun);
  return BatchTurn::kRan;
}

/// Whatever is known of the head message alone keeps it out of a batch.
bool Worker::may_batch(const Partition& partition) const {
  return context_.router.batches(partition.name().topic) && partition.batch_pace.size() > 1 &&
         partition.head_is_plain();
}

/// Takes from the stream what a batch may hold, if it is there. Ends of the log do not count: where
/// little comes there is one behind each message.
Worker::Filled Worker::fill_buffer(Partition& partition) {
  const auto most = partition.batch_pace.size();
  auto& buffer = partition.buffer;
  std::size_t messages = 0;
  std::size_t bytes = 0;
  for (std::size_t counted = 0;;) {
    for (; counted < buffer.size(); ++counted) {
      const auto& record = buffer[counted].record;
      messages += record.kind() == kafka::Record::Kind::kMessage ? 1 : 0;
      bytes += record.bytes();
    }
    if (messages >= most || bytes >= context_.options.batch.max_bytes)
      return Filled::kFull;
    if (!take_more(partition, std::min(kTake, most - messages))) {
      const bool running = partition.phase == Partition::Phase::kRunning;
      return running && !buffer.empty() ? Filled::kPartly : Filled::kGone;
    }
  }
}

/// Whether more messages may still come into the batch that was collected. A deadline, not a sleep:
/// the worker goes on with other partitions, and looks again when there is more.
bool Worker::lingers(Partition& partition, Filled filled, std::size_t items) {
  const auto linger = context_.options.batch.linger;
  // What stands behind the batch in the buffer does not go into it, nor what comes behind that.
  const bool complete =
      filled == Filled::kFull || batches_.size() == 0 || items < messages_waiting(partition);
  if (linger == std::chrono::milliseconds(0) || complete)
    return false;
  const auto now = Clock::now();
  if (!partition.linger)
    partition.linger = {now + linger, now};
  if (now >= partition.linger->until)
    return false;
  const auto pause = std::max<Clock::duration>(Clock::duration(linger) / kLooks, kShortestPause);
  partition.linger->look_again = std::min(partition.linger->until, now + pause);
  return true;
}

/// Items of the buffer up to its last message; only ends of the log are behind.
std::size_t Worker::messages_waiting(const Partition& partition) {
  auto items = partition.buffer.size();
  while (items > 0 && partition.buffer[items - 1].record.kind() != kafka::Record::Kind::kMessage)
    --items;
  return items;
}

/// Returns the items of the buffer that the batch covers: its messages, and ends of the log between
/// them that are no ends any more. Two messages at least where two can go together, and no more
/// once it has taken too long.
std::size_t Worker::collect_batch(const Partition& partition, Clock::time_point until) {
  batches_.clear();
  const auto most = partition.batch_pace.size();
  auto previous = partition.buffer.front().previous;
  auto epoch = partition.leader_epoch;
  std::size_t bytes = 0;
  std::size_t items = 0;
  for (std::size_t i = 0; i < partition.buffer.size() && batches_.size() < most; ++i) {
    const auto& [record, item_previous, record_epoch] = partition.buffer[i];
    if (batches_.size() >= 2 && Clock::now() > until)
      break;
    // The register compares with the first one's predecessor only.
    if (item_previous != previous)
      break;
    if (record.kind() != kafka::Record::Kind::kMessage) {
      if (batches_.size() == 0 || record.kind() == kafka::Record::Kind::kError)
        break;
      previous = std::max(previous, record.offset() - 1);
      continue;
    }
    bytes += record.bytes();
    const bool fits = batches_.size() == 0 || bytes <= context_.options.batch.max_bytes;
    if (!fits || goes_back(epoch, record_epoch) ||
        partition.batch_pace.runs_alone(record.offset()) ||
        !batches_.add(record.view(partition.name().topic, partition.topic_id)))
      break;
    epoch = record_epoch;
    previous = record.offset();
    items = i + 1;
  }
  return items;
}

void Worker::apply_batch(Partition& partition, std::size_t items, Clock::time_point begun) {
  ledger::Advance advance;
  advance.epoch = *partition.epoch;
  advance.previous = partition.buffer.front().previous;
  advance.next = partition.buffer[items - 1].record.offset();
  advance.leader_epoch = partition.buffer[items - 1].leader_epoch;
  for (const auto& message : batches_.messages()) {
    if (message.timestamp_ms() >= 0)
      advance.timestamp_ms = message.timestamp_ms();
  }
  try {
    begin_call(partition, context_.longest_handler);
    auto conflicts = batches_.process(
        *session_, {context_.offsets, partition.name(), partition.source, std::move(advance)});
    end_call();
    if (!conflicts.empty()) {
      partition.batch_pace.run_alone_at(std::move(conflicts));
      return;
    }
    if (batches_.in_handler())
      context_.breaker.applied(batches_.binding().label);
    moved_past(partition, items, Clock::now() - begun);
  } catch (...) {
    end_call();
    failed(partition, attempt_of_batch(partition, why_failed()));
  }
}

/// It is told of the head, of which the handler may not have seen anything.
Attempt Worker::attempt_of_batch(const Partition& partition, Failure failure) {
  const auto messages = batches_.size();
  failure.text = fmt::format("in a batch of {}: {}", messages, failure.text);
  processor_.identify(
      partition.buffer.front().record.view(partition.name().topic, partition.topic_id));
  auto attempt = attempt_of(partition, Undertaking::kBatch, std::move(failure));
  attempt.messages = messages;
  attempt.handler_begun = batches_.in_handler();
  return attempt;
}

}  // namespace pawl::engine
