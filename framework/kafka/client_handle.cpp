#include "kafka/client_handle.hpp"

#include <fmt/format.h>

#include <chrono>
#include <mutex>
#include <string_view>
#include <system_error>
#include <utility>

#include "kafka/advice.hpp"
#include "kafka/bounded_call.hpp"
#include "kafka/token_refresh.hpp"

namespace pawl::kafka {
namespace {

/// A client closes within milliseconds, or within 1 second while it sends telemetry (KIP-714).
constexpr std::chrono::seconds kClose{5};

}  // namespace

class ClientHandle::Instance {
 public:
  Instance(rd_kafka_type_t type, ConfHandle conf, LogFunction log, TokenProblem token_problem)
      : log_(std::move(log)), token_problem_(std::move(token_problem)) {
    rd_kafka_conf_set_opaque(conf.get(), this);
    rd_kafka_conf_set_log_cb(conf.get(), &Instance::on_log);
    const bool consumer = type == RD_KAFKA_CONSUMER;
    rd_kafka_conf_set_events(
        conf.get(),
        RD_KAFKA_EVENT_ERROR | (consumer ? RD_KAFKA_EVENT_REBALANCE | RD_KAFKA_EVENT_OFFSET_COMMIT
                                         : RD_KAFKA_EVENT_DR));
    char error[512];
    client_ = rd_kafka_new(type, conf.get(), error, sizeof error);
    if (client_ == nullptr) {
      throw KafkaError(
          rd_kafka_last_error(),
          fmt::format("cannot create a Kafka {}: {}", consumer ? "consumer" : "producer", error));
    }
    static_cast<void>(conf.release());  // rd_kafka_new took it
  }
  ~Instance() {
    tokens_.reset();
    purge();
    // Closing a consumer is Membership's task.
    rd_kafka_destroy_flags(client_, RD_KAFKA_DESTROY_F_NO_CONSUMER_CLOSE);
  }
  Instance(const Instance&) = delete;
  Instance& operator=(const Instance&) = delete;

  void refresh_tokens(const KafkaOptions& options) {
    tokens_ = TokenRefresh::begin(options, client_,
                                  [this](const std::string& text) { note_token_problem(text); });
  }
  [[nodiscard]] rd_kafka_t* get() const { return client_; }
  void purge() const {
    rd_kafka_purge(client_, RD_KAFKA_PURGE_F_QUEUE | RD_KAFKA_PURGE_F_INFLIGHT |
                                RD_KAFKA_PURGE_F_NON_BLOCKING);
  }

  /// From now on the owner's functions are not called. Returns the one of the log.
  LogFunction silence() {
    const std::scoped_lock lock(mutex_);
    token_problem_ = nullptr;
    return std::exchange(log_, nullptr);
  }

 private:
  static void on_log(const rd_kafka_t* client, int level, const char* facility, const char* text) {
    auto* self = static_cast<Instance*>(rd_kafka_opaque(client));
    if (self == nullptr)
      return;
    // A producer has the consumer's properties as well, and only a consumer needs all of them.
    if (rd_kafka_type(client) == RD_KAFKA_PRODUCER && facility == std::string_view("CONFWARN"))
      return;
    const std::scoped_lock lock(self->mutex_);
    // During the exit of the process, explained() may use what is destroyed.
    if (self->log_)
      self->log_(level, facility, explained(text));
  }
  void note_token_problem(const std::string& text) {
    const std::scoped_lock lock(mutex_);
    if (token_problem_)
      token_problem_(text);
    else if (log_)
      log_(3, "OAUTHBEARER", text);
  }

  std::mutex mutex_;
  LogFunction log_;             // guarded by mutex_
  TokenProblem token_problem_;  // guarded by mutex_
  rd_kafka_t* client_ = nullptr;
  std::unique_ptr<TokenRefresh> tokens_;
};

ClientHandle::ClientHandle(const KafkaOptions& options, rd_kafka_type_t type, ConfHandle conf,
                           LogFunction log, TokenProblem token_problem)
    : instance_(std::make_shared<Instance>(type, std::move(conf), std::move(log),
                                           std::move(token_problem))) {
  instance_->refresh_tokens(options);
}

ClientHandle::~ClientHandle() {
  using Clock = std::chrono::steady_clock;
  const auto log = instance_->silence();
  const auto end = Clock::now() + kClose;
  bool closed = false;
  try {
    closed = call_within(
                 [instance = std::move(instance_)]() mutable {
                   instance.reset();
                   return true;
                 },
                 [end] { return Clock::now() >= end; })
                 .has_value();
  } catch (const std::system_error&) {
    // The process can start no thread, so this one has closed the client, without a limit.
    closed = true;
  }
  if (!closed && log) {
    log(3, "CLOSE",
        fmt::format("a client did not close within {} s, because librdkafka waits, for example for "
                    "a name server. It closes in the background. No action needed",
                    kClose.count()));
  }
}

rd_kafka_t* ClientHandle::get() const {
  return instance_->get();
}

void ClientHandle::purge() const {
  instance_->purge();
}

ErrorHandle ClientHandle::call(Call function, const std::function<bool()>& out_of_time) const {
  auto error = call_within(
      [instance = instance_, function = std::move(function)] { return function(instance->get()); },
      out_of_time);
  if (error)
    return std::move(*error);
  return ErrorHandle(
      rd_kafka_error_new(RD_KAFKA_RESP_ERR__TIMED_OUT, "Kafka did not respond in time"));
}

}  // namespace pawl::kafka
