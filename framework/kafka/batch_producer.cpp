#include "kafka/batch_producer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <utility>

#include "kafka/advice.hpp"

namespace pawl::kafka {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kPoll{100};
/// librdkafka's own calls are taken up again after so long, to look whether somebody stops us.
constexpr milliseconds kSlice{500};
/// For the delivery reports of messages that are given up; librdkafka needs no broker for them.
constexpr milliseconds kPurge{1000};
/// For what is under way when somebody does; the next owner of the lane finds out the rest.
constexpr milliseconds kStopGrace{2000};

using GroupMetadataHandle = std::unique_ptr<rd_kafka_consumer_group_metadata_t,
                                            Deleter<rd_kafka_consumer_group_metadata_destroy>>;

ConfHandle make_conf(const KafkaOptions& options, const BatchProducer::Settings& settings) {
  auto handle = producer_conf(options, settings.largest);
  auto* conf = handle.get();
  if (!settings.id.empty()) {
    set_property(conf, "transactional.id", settings.id);
    set_property(conf, "transaction.timeout.ms", std::to_string(settings.timeout.count()));
  }
  // With several under way librdkafka (2.14.2) cannot abort behind a refused one: it waits for
  // sequence numbers that never come.
  set_property(conf, "max.in.flight", "1");
  set_property(conf, "batch.num.messages", settings.one_by_one ? "1" : "10000");
  set_property(conf, "linger.ms", "1");
  if (!options.librdkafka.contains("partitioner"))
    set_property(conf, "partitioner", kPartitioner);
  return handle;
}

[[noreturn]] void fail(const char* what, const rd_kafka_error_t* error) {
  throw KafkaError(rd_kafka_error_code(error),
                   fmt::format("{}: {}", what, rd_kafka_error_string(error)));
}

ErrorHandle send_offset(rd_kafka_t* client, const BatchProducer::GroupOffset& offset,
                        int timeout_ms) {
  const auto list = new_list();
  auto* entry = rd_kafka_topic_partition_list_add(list.get(), offset.partition.topic.c_str(),
                                                  offset.partition.partition);
  entry->offset = offset.committed.next;
  entry->metadata = ::strdup(offset.committed.metadata.c_str());  // the list frees it
  entry->metadata_size = offset.committed.metadata.size();
  const GroupMetadataHandle group(rd_kafka_consumer_group_metadata_new(offset.group.c_str()));
  return ErrorHandle(
      rd_kafka_send_offsets_to_transaction(client, list.get(), group.get(), timeout_ms));
}

/// The topic is not there, or not for us: the record's own fault as much as its size.
bool of_topic(rd_kafka_resp_err_t error) {
  const auto kind = kind_of_error(error);
  return kind == ErrorKind::kTopicRefused || kind == ErrorKind::kTopicUnknown;
}

}  // namespace

class BatchProducer::Deadline {
 public:
  Deadline(milliseconds timeout, const std::atomic<bool>* stopping)
      : end_(Clock::now() + timeout), stopping_(stopping) {}

  [[nodiscard]] bool passed() {
    if (stopping_ != nullptr && *stopping_) {
      end_ = std::min(end_, Clock::now() + kStopGrace);
      stopping_ = nullptr;
    }
    return Clock::now() >= end_;
  }

  /// Calls until it goes well; what may be tried again is, in its time. Throws KafkaError.
  void require(const char* what, const std::function<rd_kafka_error_t*(int)>& call) {
    while (true) {
      const ErrorHandle error{call(static_cast<int>(kSlice.count()))};
      if (!error)
        return;
      if (rd_kafka_error_is_retriable(error.get()) == 0 || passed())
        fail(what, error.get());
    }
  }

  /// The same of a call that may ignore its time. The call owns what it uses.
  void require_unlimited(const char* what, const ClientHandle& client,
                         const std::function<ErrorHandle(rd_kafka_t*, int)>& call) {
    require(what, [&](int time) {
      const auto with_time = [call, time](rd_kafka_t* raw) { return call(raw, time); };
      // A call that keeps to its time returns its own error, and is not left behind.
      const auto end = Clock::now() + 2 * kSlice;
      return client.call(with_time, [&] { return passed() && Clock::now() >= end; }).release();
    });
  }

 private:
  Clock::time_point end_;
  const std::atomic<bool>* stopping_;
};

BatchProducer::BatchProducer(const KafkaOptions& options, const Settings& settings, LogFunction log)
    : bootstrap_(options.bootstrap_servers),
      handle_(options, RD_KAFKA_PRODUCER, make_conf(options, settings), std::move(log)),
      stopping_(settings.stopping),
      transactions_(!settings.id.empty()),
      client_(handle_.get()),
      events_(rd_kafka_queue_get_main(client_)) {}

void BatchProducer::init(milliseconds timeout) {
  if (!transactions_)
    return;
  // The last error may be a timeout.
  bool pending = false;
  try {
    Deadline(timeout, stopping_)
        .require("initializing the transactional producer of the shard", [&](int time) {
          auto* error = rd_kafka_init_transactions(client_, time);
          pending =
              pending || rd_kafka_error_code(error) == RD_KAFKA_RESP_ERR_CONCURRENT_TRANSACTIONS;
          return error;
        });
  } catch (const KafkaError& error) {
    if (pending)
      throw KafkaError(ErrorKind::kTransactionPending, error.what());
    bootstrap_.name_again(client_);
    throw;
  }
}

void BatchProducer::begin() {
  refused_.clear();
  failed_.clear();
  undelivered_.clear();
  at_fault_.clear();
  of_all_ = false;
  delivered_ = false;
  if (!transactions_)
    return;
  if (const ErrorHandle error{rd_kafka_begin_transaction(client_)})
    fail("starting a Kafka transaction", error.get());
}

void BatchProducer::send(const std::string& topic, const Outgoing& message, std::int64_t tag,
                         std::optional<std::int32_t> partition) {
  // A pointer is as wide as the tag (static_assert below), and never followed.
  static_assert(sizeof(void*) == sizeof tag);
  auto* opaque = reinterpret_cast<void*>(tag);  // NOLINT(performance-no-int-to-ptr)
  const auto error = produce(client_, topic, message, opaque, partition);
  if (error == RD_KAFKA_RESP_ERR_NO_ERROR) {
    ++undecided_;
  } else {
    note_failure(tag, error, std::nullopt);
  }
}

void BatchProducer::note_failure(std::int64_t tag, rd_kafka_resp_err_t error,
                                 const std::optional<TopicPartition>& partition) {
  if (delivery_outcome(error) != Delivery::Outcome::kFailed || of_topic(error)) {
    refused_.push_back({tag, Delivery::Outcome::kRefused, rd_kafka_err2str(error)});
    return;
  }
  if (failed_.empty())
    failed_ = rd_kafka_err2str(error);
  const auto reach = reach_of(error);
  of_all_ = of_all_ || reach == FailureReach::kProducer;
  // Without a number librdkafka did not know the topic yet.
  if (!partition || partition->partition < 0)
    return;
  undelivered_.insert(*partition);
  if (reach == FailureReach::kPartition)
    at_fault_.insert(*partition);
}

bool BatchProducer::take_report(milliseconds timeout) {
  const EventHandle event{rd_kafka_queue_poll(events_.get(), static_cast<int>(timeout.count()))};
  if (event && rd_kafka_event_type(event.get()) == RD_KAFKA_EVENT_ERROR) {
    problem_ = explained(rd_kafka_event_error_string(event.get()));
    if (rd_kafka_event_error(event.get()) == RD_KAFKA_RESP_ERR__FATAL)
      throw KafkaError(RD_KAFKA_RESP_ERR__FATAL, problem_);
  } else if (event && rd_kafka_event_type(event.get()) == RD_KAFKA_EVENT_DR) {
    while (const auto* message = rd_kafka_event_message_next(event.get())) {
      --undecided_;
      if (message->err == RD_KAFKA_RESP_ERR_NO_ERROR) {
        delivered_ = true;
        continue;
      }
      note_failure(reinterpret_cast<std::int64_t>(message->_private), message->err,
                   TopicPartition{rd_kafka_topic_name(message->rkt), message->partition});
    }
  }
  return event != nullptr;
}

std::vector<Delivery> BatchProducer::settle(Deadline& deadline) {
  while (undecided_ > 0) {
    if (!take_report(kPoll))
      bootstrap_.name_again(client_);
    if (undecided_ > 0 && deadline.passed())
      give_up();
  }
  return std::exchange(refused_, {});
}

/// Purges messages that are not confirmed: their delivery reports name the partitions.
void BatchProducer::give_up() {
  auto text =
      fmt::format("Kafka did not confirm {} {} in time{}{}", undecided_,
                  undecided_ == 1 ? "message" : "messages", problem_.empty() ? "" : ": ", problem_);
  handle_.purge();
  const auto end = Clock::now() + kPurge;
  try {
    while (undecided_ > 0 && Clock::now() < end)
      take_report(kPoll);
  } catch (const KafkaError& error) {
    text += fmt::format("; {}", error.what());
  }
  throw Undelivered(RD_KAFKA_RESP_ERR__TIMED_OUT, text,
                    of_all_ ? std::set<TopicPartition>() : undelivered_, delivered_);
}

std::vector<Delivery> BatchProducer::commit(const GroupOffset& offset, milliseconds timeout) {
  Deadline deadline(timeout, stopping_);
  auto refused = settle(deadline);
  if (!refused.empty() && transactions_) {
    deadline.require_unlimited("aborting a Kafka transaction", handle_,
                               [](rd_kafka_t* client, int time) {
                                 return ErrorHandle(rd_kafka_abort_transaction(client, time));
                               });
  }
  if (!refused.empty())
    return refused;
  if (of_all_)
    throw KafkaError(RD_KAFKA_RESP_ERR__FAIL, failed_);
  if (!at_fault_.empty())
    throw Undelivered(RD_KAFKA_RESP_ERR__FAIL, failed_, at_fault_, true);
  if (!failed_.empty())
    throw Undelivered(RD_KAFKA_RESP_ERR__FAIL, failed_, undelivered_, false);
  if (!transactions_)
    return {};
  deadline.require_unlimited(
      "sending the batch's number", handle_,
      [offset](rd_kafka_t* client, int time) { return send_offset(client, offset, time); });
  deadline.require("committing a Kafka transaction",
                   [&](int time) { return rd_kafka_commit_transaction(client_, time); });
  problem_.clear();
  return {};
}

}  // namespace pawl::kafka
