#include "kafka/membership.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "kafka/advice.hpp"

namespace pawl::kafka {
namespace {

int to_int(std::chrono::milliseconds timeout) {
  return static_cast<int>(timeout.count());
}

ListHandle one(const TopicPartition& partition, std::int64_t offset) {
  auto list = new_list();
  rd_kafka_topic_partition_list_add(list.get(), partition.topic.c_str(), partition.partition)
      ->offset = offset;
  return list;
}

ListHandle with_metadata(const std::vector<Membership::Progress>& progress,
                         const std::string& metadata) {
  auto list = new_list(static_cast<int>(progress.size()));
  for (const auto& p : progress) {
    auto* entry = rd_kafka_topic_partition_list_add(list.get(), p.partition.topic.c_str(),
                                                    p.partition.partition);
    entry->offset = p.next_offset;
    // librdkafka frees it with the list.
    entry->metadata = ::strdup(metadata.c_str());
    entry->metadata_size = metadata.size();
  }
  return list;
}

void check(rd_kafka_resp_err_t code, const char* what) {
  if (code != RD_KAFKA_RESP_ERR_NO_ERROR) {
    throw KafkaError(code, fmt::format("{}: {}", what, rd_kafka_err2str(code)));
  }
}

void check(const ErrorHandle& error, const char* what) {
  if (error) {
    throw KafkaError(rd_kafka_error_code(error.get()),
                     fmt::format("{}: {}", what, rd_kafka_error_string(error.get())));
  }
}

/// The first error of an offset commit, of the request or of one of its partitions.
rd_kafka_resp_err_t commit_error(rd_kafka_event_t* event) {
  auto code = rd_kafka_event_error(event);
  const auto* list = rd_kafka_event_topic_partition_list(event);
  for (int i = 0; list != nullptr && code == RD_KAFKA_RESP_ERR_NO_ERROR && i < list->cnt; ++i)
    code = list->elems[i].err;
  return code;
}

bool refused(const EventHandle& commit) {
  // There was nothing to commit.
  if (rd_kafka_event_error(commit.get()) == RD_KAFKA_RESP_ERR__NO_OFFSET)
    return false;
  return commit_error(commit.get()) != RD_KAFKA_RESP_ERR_NO_ERROR;
}

bool means_not_a_member(rd_kafka_resp_err_t code) {
  switch (code) {
    case RD_KAFKA_RESP_ERR_UNKNOWN_MEMBER_ID:
    case RD_KAFKA_RESP_ERR_ILLEGAL_GENERATION:
    case RD_KAFKA_RESP_ERR_FENCED_INSTANCE_ID:
    case RD_KAFKA_RESP_ERR_STALE_MEMBER_EPOCH:
    case RD_KAFKA_RESP_ERR_FENCED_MEMBER_EPOCH:
    case RD_KAFKA_RESP_ERR_REBALANCE_IN_PROGRESS:
    case RD_KAFKA_RESP_ERR__ASSIGNMENT_LOST:
      return true;
    default:
      return false;
  }
}

}  // namespace

Membership::Membership(Client& client, const KafkaOptions& options, MembershipListener& listener)
    : client_(client),
      listener_(listener),
      intake_(client),
      manual_(options.assignment == Assignment::kManual),
      queue_(rd_kafka_queue_get_consumer(client.raw())) {}

Membership::~Membership() {
  for (const auto& [partition, stream] : streams_)
    intake_.remove(*stream);
}

void Membership::start(const std::vector<std::string>& topics,
                       const std::vector<TopicPartition>& manual) {
  serve_early_errors();
  if (manual_) {
    auto list = new_list(static_cast<int>(manual.size()));
    for (const auto& p : manual) {
      rd_kafka_topic_partition_list_add(list.get(), p.topic.c_str(), p.partition);
    }
    assign(list.get());
    return;
  }
  subscribe(topics);
}

/// Before the group is joined, the client queues errors of connections and of the group's
/// coordinator. The process has reported those of connections while it waited for Kafka, and Kafka
/// has responded since. Those of the coordinator, for example a missing right, are not repeated.
void Membership::serve_early_errors() {
  while (const EventHandle event{rd_kafka_queue_poll(queue_.get(), 0)}) {
    const auto kind = kind_of_error(rd_kafka_event_error(event.get()));
    if (kind != ErrorKind::kAllBrokersDown && kind != ErrorKind::kBrokerFailed)
      serve(event);
  }
}

void Membership::subscribe(const std::vector<std::string>& topics) {
  // Of nothing librdkafka makes no subscription.
  if (topics.empty()) {
    rd_kafka_unsubscribe(client_.raw());
    return;
  }
  auto list = new_list(static_cast<int>(topics.size()));
  for (const auto& topic : topics) {
    rd_kafka_topic_partition_list_add(list.get(), topic.c_str(), RD_KAFKA_PARTITION_UA);
  }
  check(rd_kafka_subscribe(client_.raw(), list.get()), "subscribing");
}

void Membership::rejoin(const std::vector<std::string>& topics) {
  rd_kafka_unsubscribe(client_.raw());
  subscribe(topics);
}

void Membership::poll(std::chrono::milliseconds timeout) {
  const EventHandle event(rd_kafka_queue_poll(queue_.get(), to_int(timeout)));
  if (event)
    serve(event);
}

void Membership::serve(const EventHandle& event) {
  switch (rd_kafka_event_type(event.get())) {
    case RD_KAFKA_EVENT_REBALANCE:
      serve_rebalance(event);
      break;
    case RD_KAFKA_EVENT_ERROR: {
      const bool fatal = rd_kafka_event_error_is_fatal(event.get()) != 0;
      auto code = rd_kafka_event_error(event.get());
      std::string text = rd_kafka_event_error_string(event.get());
      if (fatal) {
        char reason[512];
        code = rd_kafka_fatal_error(client_.raw(), reason, sizeof reason);
        text = fmt::format("{} ({})", reason, rd_kafka_err2name(code));
      }
      listener_.on_kafka_error(kind_of_error(code), explained(text), fatal);
      break;
    }
    case RD_KAFKA_EVENT_FETCH:
      while (const auto* message = rd_kafka_event_message_next(event.get())) {
        if (message->rkt == nullptr)
          continue;
        listener_.on_stray_record({rd_kafka_topic_name(message->rkt), message->partition});
      }
      break;
    case RD_KAFKA_EVENT_OFFSET_COMMIT:
      if (refused(event))
        listener_.on_commit_refused();
      break;
    default:
      break;
  }
}

void Membership::serve_rebalance(const EventHandle& event) {
  auto* partitions = rd_kafka_event_topic_partition_list(event.get());
  switch (rd_kafka_event_error(event.get())) {
    case RD_KAFKA_RESP_ERR__ASSIGN_PARTITIONS:
      assign(partitions);
      break;
    case RD_KAFKA_RESP_ERR__REVOKE_PARTITIONS: {
      revocation_.reset(rd_kafka_topic_partition_list_copy(partitions));
      std::vector<TopicPartition> revoked;
      for (int i = 0; i < partitions->cnt; ++i) {
        revoked.push_back({partitions->elems[i].topic, partitions->elems[i].partition});
      }
      listener_.on_revoked(revoked, rd_kafka_assignment_lost(client_.raw()) != 0);
      break;
    }
    default:
      listener_.on_kafka_error(kind_of_error(rd_kafka_event_error(event.get())),
                               explained(rd_kafka_event_error_string(event.get())), false);
      rd_kafka_assign(client_.raw(), nullptr);
  }
}

bool Membership::cooperative() const {
  const char* protocol = rd_kafka_rebalance_protocol(client_.raw());
  return protocol != nullptr && std::strcmp(protocol, "COOPERATIVE") == 0;
}

void Membership::assign(const rd_kafka_topic_partition_list_t* partitions) {
  // The order matters: the stream takes the queue out of the main queue, the pause keeps the
  // fetcher from asking for offset 0 (which may be long gone), and only then the partition is
  // assigned, at an absolute offset: a logical one is answered late and would override our seek.
  const ListHandle list(rd_kafka_topic_partition_list_copy(partitions));
  std::vector<std::shared_ptr<PartitionStream>> streams;
  for (int i = 0; i < list->cnt; ++i) {
    TopicPartition partition{list->elems[i].topic, list->elems[i].partition};
    list->elems[i].offset = 0;
    auto readable = listener_.readable_callback(partition);
    auto stream = intake_.add(partition, std::move(readable));
    streams_[partition] = stream;
    streams.push_back(std::move(stream));
  }
  check(rd_kafka_pause_partitions(client_.raw(), list.get()), "pausing new partitions");
  if (cooperative()) {
    check(ErrorHandle(rd_kafka_incremental_assign(client_.raw(), list.get())), "assigning");
  } else {
    check(rd_kafka_assign(client_.raw(), list.get()), "assigning");
  }
  listener_.on_assigned(std::move(streams));
}

void Membership::complete_revoke() {
  if (!revocation_)
    return;
  const auto partitions = std::move(revocation_);
  unassign(partitions.get());
}

void Membership::close_streams(const rd_kafka_topic_partition_list_t* partitions) {
  for (int i = 0; i < partitions->cnt; ++i) {
    const auto stream = streams_.find({partitions->elems[i].topic, partitions->elems[i].partition});
    if (stream == streams_.end())
      continue;
    intake_.remove(*stream->second);
    streams_.erase(stream);
  }
}

void Membership::unassign(const rd_kafka_topic_partition_list_t* partitions) {
  close_streams(partitions);
  if (cooperative()) {
    // Fails harmlessly when librdkafka dropped the assignment itself meanwhile.
    const ErrorHandle error(rd_kafka_incremental_unassign(client_.raw(), partitions));
  } else {
    rd_kafka_assign(client_.raw(), nullptr);
  }
}

std::vector<TopicPartition> Membership::restart_fetch(const TopicPartition& partition) {
  auto list = one(partition, 0);
  if (cooperative()) {
    if (const ErrorHandle error{rd_kafka_incremental_unassign(client_.raw(), list.get())})
      return {};
  } else {
    rd_kafka_topic_partition_list_t* raw = nullptr;
    if (rd_kafka_assignment(client_.raw(), &raw) != RD_KAFKA_RESP_ERR_NO_ERROR)
      return {};
    list.reset(raw);
    for (int i = 0; i < list->cnt; ++i)
      list->elems[i].offset = 0;
  }
  rd_kafka_pause_partitions(client_.raw(), list.get());
  if (cooperative()) {
    if (const ErrorHandle error{rd_kafka_incremental_assign(client_.raw(), list.get())})
      return {};
  } else {
    rd_kafka_assign(client_.raw(), list.get());
  }
  std::vector<TopicPartition> touched;
  for (int i = 0; i < list->cnt; ++i) {
    touched.push_back({list->elems[i].topic, list->elems[i].partition});
  }
  return touched;
}

void Membership::close() {
  // Closing alone ends a member without partitions silently (librdkafka 2.14), and the group's next
  // rebalance would wait until Kafka misses it. Without a subscription it leaves.
  if (!manual_ && streams_.empty())
    rd_kafka_unsubscribe(client_.raw());
  // librdkafka closes nothing after a fatal error: there is no membership left to end.
  const ErrorHandle error(rd_kafka_consumer_close_queue(client_.raw(), queue_.get()));
  if (error)
    not_closing_ = true;
}

bool Membership::closed() const {
  return not_closing_ || rd_kafka_consumer_closed(client_.raw()) != 0;
}

void Membership::seek_and_resume(const TopicPartition& partition, const LogPosition& next,
                                 std::chrono::milliseconds timeout) {
  const auto list = one(partition, next.offset);
  if (next.leader_epoch)
    rd_kafka_topic_partition_set_leader_epoch(&list->elems[0], *next.leader_epoch);
  check(ErrorHandle(rd_kafka_seek_partitions(client_.raw(), list.get(), to_int(timeout))),
        "seeking");
  check(list->elems[0].err, "seeking");
  check(rd_kafka_resume_partitions(client_.raw(), list.get()), "resuming");
}

void Membership::pause(const TopicPartition& partition) {
  const auto list = one(partition, RD_KAFKA_OFFSET_INVALID);
  rd_kafka_pause_partitions(client_.raw(), list.get());
}

void Membership::commit_async(const std::vector<Progress>& progress, const std::string& metadata) {
  if (progress.empty())
    return;
  const auto list = with_metadata(progress, metadata);
  rd_kafka_commit(client_.raw(), list.get(), 1);
}

Membership::Proof Membership::prove(const std::vector<Progress>& progress,
                                    const std::string& metadata,
                                    std::chrono::milliseconds timeout) {
  std::map<std::string, std::vector<Progress>> by_topic;
  for (const auto& one : progress)
    by_topic[one.partition.topic].push_back(one);
  Proof proof;
  const QueueHandle answers(rd_kafka_queue_new(client_.raw()));
  for (const auto& [topic, its] : by_topic) {
    proof.unproven[topic] = "Kafka does not respond";
    const auto list = with_metadata(its, metadata);
    check(rd_kafka_commit_queue(client_.raw(), list.get(), answers.get(), nullptr,
                                const_cast<std::string*>(&topic)),
          "proving membership");
  }
  const auto until = std::chrono::steady_clock::now() + timeout;
  for (std::size_t answered = 0; answered < by_topic.size(); ++answered) {
    const auto left =
        std::chrono::ceil<std::chrono::milliseconds>(until - std::chrono::steady_clock::now());
    const EventHandle event(rd_kafka_queue_poll(answers.get(), std::max(to_int(left), 0)));
    if (!event)
      break;
    const auto code = commit_error(event.get());
    if (means_not_a_member(code))
      return {false, {}};
    const auto& topic = *static_cast<const std::string*>(rd_kafka_event_opaque(event.get()));
    if (code == RD_KAFKA_RESP_ERR_NO_ERROR) {
      proof.unproven.erase(topic);
    } else {
      proof.unproven[topic] = rd_kafka_err2str(code);
    }
  }
  return proof;
}

}  // namespace pawl::kafka
