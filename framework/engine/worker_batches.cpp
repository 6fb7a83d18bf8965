// What a worker does with messages whose handler takes batches: many in one transaction, and what
// is not plain, or has failed, one at a time (docs/batches.md).
#include <fmt/format.h>

#include <utility>

#include "engine/worker.hpp"

namespace pawl::engine {

Worker::BatchTurn Worker::run_batch(Partition& partition) {
  if (!may_batch(partition))
    return BatchTurn::kNone;
  if (!fill_buffer(partition)) {
    processor_.settle();
    return BatchTurn::kRan;
  }
  if (lingers(partition))
    return BatchTurn::kWaits;
  const auto items = collect_batch(partition);
  if (batches_.size() < 2)
    return BatchTurn::kNone;
  const auto pass = ask_to_run(partition);
  if (!pass)
    return BatchTurn::kRan;
  processor_.settle();
  apply_batch(partition, items);
  return BatchTurn::kRan;
}

/// Whatever is known of the head message alone keeps it out of a batch.
bool Worker::may_batch(const Partition& partition) const {
  return context_.router.batches(partition.name().topic) && partition.batch_pace.size() > 1 &&
         partition.head_is_plain();
}

/// Takes from the stream what a batch may hold, if it is there. False: the partition is not running
/// any more.
bool Worker::fill_buffer(Partition& partition) {
  const auto most = partition.batch_pace.size();
  auto& buffer = partition.buffer;
  std::size_t bytes = 0;
  for (std::size_t counted = 0;;) {
    for (; counted < buffer.size(); ++counted)
      bytes += buffer[counted].record.bytes();
    if (buffer.size() >= most || bytes >= context_.options.batch.max_bytes)
      return true;
    if (!take_more(partition, std::min(kTake, most - buffer.size())))
      return partition.phase == Partition::Phase::kRunning && !buffer.empty();
  }
}

/// A deadline, not a sleep: the worker goes on with other partitions, and comes back when there is
/// more.
bool Worker::lingers(Partition& partition) {
  const auto linger = context_.options.batch.linger;
  if (linger == std::chrono::milliseconds(0))
    return false;
  std::size_t bytes = 0;
  for (const auto& item : partition.buffer)
    bytes += item.record.bytes();
  const bool full = partition.buffer.size() >= partition.batch_pace.size() ||
                    bytes >= context_.options.batch.max_bytes;
  if (!full && !partition.linger_until) {
    const auto& head = partition.buffer.front().record;
    if (head.kind() != kafka::Record::Kind::kMessage ||
        !batches_.takes(head.view(partition.name().topic, partition.topic_id)))
      return false;
    partition.linger_until = Clock::now() + linger;
  }
  if (!full && Clock::now() < *partition.linger_until)
    return true;
  partition.linger_until.reset();
  return false;
}

/// Returns the items of the buffer that the batch covers: its messages, and ends of the log between
/// them that are no ends any more.
std::size_t Worker::collect_batch(const Partition& partition) {
  batches_.clear();
  const auto most = partition.batch_pace.size();
  auto previous = partition.buffer.front().previous;
  auto epoch = partition.leader_epoch;
  std::size_t bytes = 0;
  std::size_t items = 0;
  for (std::size_t i = 0; i < partition.buffer.size() && batches_.size() < most; ++i) {
    const auto& [record, item_previous] = partition.buffer[i];
    // The register compares with the first one's predecessor only.
    if (item_previous != previous)
      break;
    if (record.kind() != kafka::Record::Kind::kMessage) {
      if (batches_.size() == 0)
        break;
      previous = std::max(previous, record.offset() - 1);
      continue;
    }
    const auto record_epoch = record.leader_epoch();
    bytes += record.bytes();
    const bool fits = batches_.size() == 0 || bytes <= context_.options.batch.max_bytes;
    if (!fits || goes_back(epoch, record_epoch) ||
        partition.batch_pace.runs_alone(record.offset()) ||
        !batches_.add(record.view(partition.name().topic, partition.topic_id)))
      break;
    if (record_epoch)
      epoch = record_epoch;
    previous = record.offset();
    items = i + 1;
  }
  return items;
}

void Worker::apply_batch(Partition& partition, std::size_t items) {
  ledger::Advance advance;
  advance.epoch = *partition.epoch;
  advance.previous = partition.buffer.front().previous;
  advance.next = partition.buffer[items - 1].record.offset();
  for (std::size_t i = 0; i < items; ++i) {
    if (const auto epoch = partition.buffer[i].record.leader_epoch())
      advance.leader_epoch = epoch;
  }
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
    moved_past(partition, items);
  } catch (...) {
    end_call();
    fail_batch(partition, explain(std::current_exception(), session_->alive()));
  }
}

/// Nothing is stored (or in doubt). Whose fault it is shows once it runs alone.
void Worker::fail_batch(Partition& partition, Failure failure) {
  using postgres::FailureClass;
  const auto messages = batches_.size();
  const auto& head = partition.buffer.front().record;
  // What fail() asks for is about the head, of which the handler may not have seen anything.
  processor_.identify(head.view(partition.name().topic, partition.topic_id));
  failure.text = fmt::format("in a batch of {}: {}", messages, failure.text);
  switch (failure.kind) {
    case FailureClass::kConnection:
      // SQL that crashes its server process does so again, alone, and is counted then.
      if (batches_.in_handler() && !postgres::is_goodbye(failure.sqlstate))
        partition.batch_pace.run_alone(messages);
      break;
    case FailureClass::kContention:
    case FailureClass::kResource:
      partition.batch_pace.contended(messages);
      break;
    case FailureClass::kProgram:
    case FailureClass::kMessage:
      partition.batch_pace.failed(messages);
      emit_failed(partition, head.offset(), failure);
      return;
    case FailureClass::kFenced:
    case FailureClass::kRowMissing:
    case FailureClass::kOutOfOrder:
    case FailureClass::kTransactionEnded:
      break;
  }
  fail(partition, failure);
}

}  // namespace pawl::engine
