#include "kafka/batch_producer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>

#include "kafka/advice.hpp"
#include "kafka/token_refresh.hpp"

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

 private:
  Clock::time_point end_;
  const std::atomic<bool>* stopping_;
};

class BatchProducer::Handle {
 public:
  Handle(const KafkaOptions& options, const Settings& settings, LogFunction log)
      : log_(std::move(log)) {
    auto conf = make_conf(options, settings);
    rd_kafka_conf_set_opaque(conf.get(), this);
    rd_kafka_conf_set_log_cb(conf.get(), &Handle::on_log);
    rd_kafka_conf_set_events(conf.get(), RD_KAFKA_EVENT_DR | RD_KAFKA_EVENT_ERROR);
    char error[512];
    client_ = rd_kafka_new(RD_KAFKA_PRODUCER, conf.get(), error, sizeof error);
    if (client_ == nullptr)
      throw KafkaError(rd_kafka_last_error(),
                       fmt::format("cannot create a Kafka producer: {}", error));
    static_cast<void>(conf.release());  // rd_kafka_new took it
    tokens_ = TokenRefresh::begin(
        options, client_, [this](const std::string& problem) { tell(3, "OAUTHBEARER", problem); });
  }
  ~Handle() {
    purge();
    tokens_.reset();
    rd_kafka_destroy(client_);
  }
  Handle(const Handle&) = delete;
  Handle& operator=(const Handle&) = delete;

  [[nodiscard]] rd_kafka_t* client() const { return client_; }
  void purge() const {
    rd_kafka_purge(client_, RD_KAFKA_PURGE_F_QUEUE | RD_KAFKA_PURGE_F_INFLIGHT);
  }
  /// Nothing is logged any more, and the log function not called.
  void silence() {
    const std::scoped_lock lock(mutex_);
    log_ = nullptr;
  }

 private:
  static void on_log(const rd_kafka_t* client, int level, const char* facility, const char* text) {
    auto* self = static_cast<Handle*>(rd_kafka_opaque(client));
    const std::string_view about(facility);
    // As in Producer.
    if (self != nullptr && about != "CONFWARN" && about != "TERMINATE")
      self->tell(level, facility, explained(text));
  }
  void tell(int level, const std::string& facility, const std::string& text) {
    const std::scoped_lock lock(mutex_);
    if (log_)
      log_(level, facility, text);
  }

  std::mutex mutex_;
  LogFunction log_;
  rd_kafka_t* client_ = nullptr;
  std::unique_ptr<TokenRefresh> tokens_;
};

BatchProducer::BatchProducer(const KafkaOptions& options, const Settings& settings, LogFunction log)
    : handle_(std::make_shared<Handle>(options, settings, std::move(log))),
      bootstrap_(options.bootstrap_servers),
      stopping_(settings.stopping),
      transactions_(!settings.id.empty()),
      client_(handle_->client()),
      events_(rd_kafka_queue_get_main(client_)) {}

BatchProducer::~BatchProducer() {
  handle_->silence();
}

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
  handle_->purge();
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
    deadline.require("aborting a Kafka transaction",
                     [&](int time) { return rd_kafka_abort_transaction(client_, time); });
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
  deadline.require("sending the batch's number",
                   [&](int time) { return send_offset(offset, time, deadline); });
  deadline.require("committing a Kafka transaction",
                   [&](int time) { return rd_kafka_commit_transaction(client_, time); });
  problem_.clear();
  return {};
}

/// librdkafka (2.14.2) waits for the group's coordinator without a bound while no broker is there
/// (confluentinc/librdkafka#5456), and a client cannot be destroyed during a call. So a call that
/// is out of time keeps the client, on a thread of its own, until librdkafka returns. What it still
/// sends has no effect: the next producer of this id shuts it out.
rd_kafka_error_t* BatchProducer::send_offset(const GroupOffset& offset, int timeout_ms,
                                             Deadline& deadline) const {
  std::packaged_task<ErrorHandle()> call([handle = handle_, offset, timeout_ms] {
    const auto list = new_list();
    auto* entry = rd_kafka_topic_partition_list_add(list.get(), offset.partition.topic.c_str(),
                                                    offset.partition.partition);
    entry->offset = offset.committed.next;
    entry->metadata = ::strdup(offset.committed.metadata.c_str());  // the list frees it
    entry->metadata_size = offset.committed.metadata.size();
    const GroupMetadataHandle group(rd_kafka_consumer_group_metadata_new(offset.group.c_str()));
    return ErrorHandle(rd_kafka_send_offsets_to_transaction(handle->client(), list.get(),
                                                            group.get(), timeout_ms));
  });
  auto answer = call.get_future();
  std::thread thread(std::move(call));
  while (answer.wait_for(kPoll) != std::future_status::ready) {
    if (deadline.passed()) {
      thread.detach();
      return rd_kafka_error_new(RD_KAFKA_RESP_ERR__TIMED_OUT, "Kafka did not respond in time");
    }
  }
  thread.join();
  return answer.get().release();
}

}  // namespace pawl::kafka
