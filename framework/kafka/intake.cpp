#include "kafka/intake.hpp"

#include <chrono>
#include <utility>

namespace pawl::kafka {
namespace {

constexpr int kSeekTimeoutMs = 3000;
/// A seek on a partition whose fetcher is starting answers "erroneous state" for a moment.
constexpr std::chrono::milliseconds kResumeRetry{50};

ListHandle one(const TopicPartition& partition) {
  auto list = new_list();
  rd_kafka_topic_partition_list_add(list.get(), partition.topic.c_str(), partition.partition);
  return list;
}

}  // namespace

Intake::Intake(Client& client)
    : client_(client.raw()),
      buffer_(client.plan(), [this] { signal(); }),
      queue_(rd_kafka_queue_new(client_)),
      taken_(kTake),
      thread_([this] { run(); }) {
  rd_kafka_queue_cb_event_enable(queue_.get(), &Intake::on_event, this);
}

Intake::~Intake() {
  {
    const std::scoped_lock lock(signal_mutex_);
    stopping_ = true;
  }
  signalled_.notify_one();
  thread_.join();
  rd_kafka_queue_cb_event_enable(queue_.get(), nullptr, nullptr);
}

void Intake::on_event(rd_kafka_t*, void* opaque) {
  static_cast<Intake*>(opaque)->signal();
}

void Intake::signal() {
  {
    const std::scoped_lock lock(signal_mutex_);
    woken_ = true;
  }
  signalled_.notify_one();
}

void Intake::ask_resume(std::shared_ptr<PartitionStream> stream) {
  {
    const std::scoped_lock lock(signal_mutex_);
    resumes_.push_back(std::move(stream));
    woken_ = true;
  }
  signalled_.notify_one();
}

std::shared_ptr<PartitionStream> Intake::add(const TopicPartition& partition,
                                             std::function<void()> on_readable) {
  QueueHandle queue(
      rd_kafka_queue_get_partition(client_, partition.topic.c_str(), partition.partition));
  if (!queue) {
    throw KafkaError(RD_KAFKA_RESP_ERR__UNKNOWN_PARTITION,
                     "librdkafka has no queue for a partition of topic " + partition.topic);
  }
  auto stream = std::make_shared<PartitionStream>(*this, partition, std::move(on_readable));
  const std::scoped_lock lock(routing_mutex_);
  rd_kafka_queue_forward(queue.get(), queue_.get());
  last_ = nullptr;
  streams_[partition] = {stream, std::move(queue)};
  return stream;
}

void Intake::remove(PartitionStream& stream) {
  const std::scoped_lock lock(routing_mutex_);
  stream.close();
  if (!is_current(stream))
    return;
  forget(stream);
  const auto found = streams_.find(stream.partition());
  const QueueHandle main(rd_kafka_queue_get_consumer(client_));
  if (main)
    rd_kafka_queue_forward(found->second.queue.get(), main.get());
  streams_.erase(found);
}

void Intake::open(PartitionStream& stream, std::int64_t offset, const std::function<void()>& seek) {
  const std::scoped_lock lock(routing_mutex_);
  if (!is_current(stream)) {
    throw KafkaError(RD_KAFKA_RESP_ERR__STATE,
                     "a partition of topic " + stream.partition().topic + " is no longer assigned");
  }
  forget(stream);
  stream.open(offset);
  try {
    seek();
  } catch (...) {
    stream.shut();
    throw;
  }
  // librdkafka ends the forwarding when it stops to fetch a partition, some time after it was
  // unassigned: perhaps after add(). Now it is fetching. What came in between moves along.
  rd_kafka_queue_forward(streams_.at(stream.partition()).queue.get(), queue_.get());
}

void Intake::shut(PartitionStream& stream, const std::function<void()>& pause) {
  const std::scoped_lock lock(routing_mutex_);
  stream.shut();
  if (!is_current(stream))
    return;
  forget(stream);
  pause();
}

/// Not so once the partition was given away: it may have come back since, for another worker.
bool Intake::is_current(const PartitionStream& stream) const {
  const auto found = streams_.find(stream.partition());
  return found != streams_.end() && found->second.stream.get() == &stream;
}

/// What is in hand was fetched before the stream was sought, opened or shut.
void Intake::forget(const PartitionStream& stream) {
  last_ = nullptr;
  std::erase_if(in_hand_, [&](const InHand& item) { return item.stream == &stream; });
  // It may have been one of these that waited for room.
  signal();
}

void Intake::run() {
  std::vector<std::shared_ptr<PartitionStream>> resumes;
  std::vector<std::shared_ptr<PartitionStream>> again;
  while (true) {
    {
      std::unique_lock lock(signal_mutex_);
      const auto woken = [this] { return woken_ || stopping_; };
      if (again.empty()) {
        signalled_.wait(lock, woken);
      } else {
        signalled_.wait_for(lock, kResumeRetry, woken);
      }
      if (stopping_)
        return;
      woken_ = false;
      resumes = std::exchange(again, {});
      resumes.insert(resumes.end(), resumes_.begin(), resumes_.end());
      resumes_.clear();
    }
    for (auto& stream : resumes) {
      const std::scoped_lock lock(routing_mutex_);
      if (!resume(*stream))
        again.push_back(std::move(stream));
    }
    route_all();
  }
}

void Intake::route_all() {
  while (true) {
    // Let go of in between: who positions a partition waits for it.
    const std::scoped_lock lock(routing_mutex_);
    if (in_hand_.empty() && !take_from_queue())
      return;
    while (!in_hand_.empty()) {
      if (!route())
        return;
    }
  }
}

bool Intake::take_from_queue() {
  const auto count = rd_kafka_consume_batch_queue(queue_.get(), 0, taken_.data(), taken_.size());
  for (ssize_t i = 0; i < count; ++i) {
    const MessageHandle message(taken_[static_cast<std::size_t>(i)]);
    auto* stream = find(*message);
    if (stream == nullptr)
      continue;
    auto& record = in_hand_.emplace_back(stream, Record(*message)).record;
    if (record.kind() == Record::Kind::kEndOfLog)
      record.note_leader_epoch_before_end(client_, stream->partition());
  }
  return count > 0;
}

/// The first in hand; false: it waits for room.
bool Intake::route() {
  auto& [stream, record] = in_hand_.front();
  switch (stream->push(record)) {
    case PartitionStream::Push::kTaken:
      break;
    case PartitionStream::Push::kWait:
      return !buffer_.wait_for_room(record.memory());
    case PartitionStream::Push::kStop:
      stop_delivery(*stream);
      break;
    case PartitionStream::Push::kUnsure:
      ask_resume(stream->shared_from_this());
      break;
  }
  in_hand_.pop_front();
  return true;
}

/// Null: it is of no partition that is assigned.
PartitionStream* Intake::find(const rd_kafka_message_t& message) {
  if (message.rkt == nullptr)
    return nullptr;
  const char* topic = rd_kafka_topic_name(message.rkt);
  if (last_ != nullptr && last_->partition().partition == message.partition &&
      last_->partition().topic == topic)
    return last_;
  const auto found = streams_.find({topic, message.partition});
  last_ = found == streams_.end() ? nullptr : found->second.stream.get();
  return last_;
}

void Intake::stop_delivery(const PartitionStream& stream) {
  const auto list = one(stream.partition());
  rd_kafka_pause_partitions(client_, list.get());
}

/// False: not yet. librdkafka resumes where it has delivered last, which is behind what the stream
/// has; so it is told where. In this order: a seek wakes librdkafka's fetcher, a resume does not.
bool Intake::resume(PartitionStream& stream) {
  const auto from = stream.continuation();
  if (!from)
    return true;
  const auto list = one(stream.partition());
  auto& entry = list->elems[0];
  entry.offset = from->offset;
  rd_kafka_topic_partition_set_leader_epoch(&entry, from->leader_epoch.value_or(-1));
  rd_kafka_resume_partitions(client_, list.get());
  const ErrorHandle error(rd_kafka_seek_partitions(client_, list.get(), kSeekTimeoutMs));
  if (error || entry.err != RD_KAFKA_RESP_ERR_NO_ERROR)
    return false;
  // What librdkafka has queued it drops by its version; what is out of its queue, nobody but we.
  forget(stream);
  stream.resumed();
  return true;
}

}  // namespace pawl::kafka
