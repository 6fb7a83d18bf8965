#include "kafka/client.hpp"

#include <fmt/format.h>

#include "kafka/advice.hpp"
#include "kafka/token_refresh.hpp"

namespace pawl::kafka {
namespace {

std::string milliseconds_text(std::chrono::milliseconds duration) {
  return std::to_string(duration.count());
}

void set_group_properties(rd_kafka_conf_t* conf, const KafkaOptions& options) {
  set_property(conf, "group.id", options.group);
  if (!options.group_instance_id.empty())
    set_property(conf, "group.instance.id", options.group_instance_id);
  if (options.group_protocol == GroupProtocol::kConsumer) {
    set_property(conf, "group.protocol", "consumer");
    // Session and assignor are the broker's decision under KIP-848.
  } else {
    set_property(conf, "partition.assignment.strategy", options.assignor);
    set_property(conf, "session.timeout.ms", milliseconds_text(options.session_timeout));
    // Members learn of a rebalance by their heartbeat's answer: a planned hand-over stalls for one.
    const auto heartbeat = std::min(options.session_timeout / 4, std::chrono::milliseconds(500));
    set_property(conf, "heartbeat.interval.ms", milliseconds_text(heartbeat));
  }
}

std::size_t kibibytes(std::size_t bytes) {
  return std::max<std::size_t>(1, bytes / 1024);
}

std::size_t largest_message(const rd_kafka_conf_t* conf) {
  char text[32];
  std::size_t size = sizeof text;
  if (rd_kafka_conf_get(conf, "message.max.bytes", text, &size) != RD_KAFKA_CONF_OK)
    throw KafkaError(RD_KAFKA_RESP_ERR__INVALID_ARG,
                     "librdkafka has no property message.max.bytes");
  return std::stoull(text);
}

ConfHandle make_conf(const KafkaOptions& options, const BufferPlan& plan) {
  auto handle = common_conf(options);
  auto* conf = handle.get();
  set_group_properties(conf, options);

  // Positions come from the register alone.
  set_property(conf, "enable.auto.commit", "false");
  set_property(conf, "enable.auto.offset.store", "false");
  set_property(conf, "auto.offset.reset", "error");
  set_property(conf, "enable.partition.eof", "true");
  set_property(conf, "isolation.level", "read_committed");
  set_property(conf, "check.crcs", "true");
  set_property(conf, "allow.auto.create.topics", "false");

  // All partitions' queues forward to one, so that these bound them together (Intake).
  set_property(conf, "queued.max.messages.kbytes", std::to_string(kibibytes(plan.queue)));
  set_property(conf, "queued.min.messages", std::to_string(plan.queue_records()));
  set_property(conf, "fetch.message.max.bytes", std::to_string(plan.quantum));
  // How long librdkafka rests when that queue is full; nothing wakes it.
  set_property(conf, "fetch.queue.backoff.ms", "20");
  // A partition that is sought or resumed while a request for others is under way waits for its
  // answer, and where these have nothing the broker keeps it for so long.
  set_property(conf, "fetch.wait.max.ms", "100");

  set_property(
      conf, "topic.metadata.refresh.interval.ms",
      milliseconds_text(std::max(options.topic_check_interval, std::chrono::milliseconds(1000))));

  for (const auto& [name, value] : options.librdkafka)
    set_property(conf, name, value);
  if (!options.librdkafka.contains("fetch.max.bytes")) {
    // librdkafka refuses less than a message may be.
    const auto bytes = std::max(plan.response, largest_message(conf));
    set_property(conf, "fetch.max.bytes", std::to_string(bytes));
  }
  return handle;
}

}  // namespace

const char* library_version() {
  return rd_kafka_version_str();
}

ConfHandle common_conf(const KafkaOptions& options) {
  ConfHandle handle(rd_kafka_conf_new());
  auto* conf = handle.get();
  set_property(conf, "bootstrap.servers", options.bootstrap_servers);
  set_property(conf, "client.id", "pawl");
  set_property(conf, "reconnect.backoff.ms", "50");
  set_property(conf, "reconnect.backoff.max.ms", "1000");
  TokenRefresh::prepare(options, conf);
  explain_certificates(conf);
  return handle;
}

void set_property(rd_kafka_conf_t* conf, const std::string& name, const std::string& value) {
  char error[512];
  if (rd_kafka_conf_set(conf, name.c_str(), value.c_str(), error, sizeof error) !=
      RD_KAFKA_CONF_OK) {
    throw KafkaError(RD_KAFKA_RESP_ERR__INVALID_ARG,
                     fmt::format("librdkafka rejects {}: {}", name, error));
  }
}

std::string property_problem(const std::string& name, const std::string& value) {
  const ConfHandle conf(rd_kafka_conf_new());
  char error[512];
  switch (rd_kafka_conf_set(conf.get(), name.c_str(), value.c_str(), error, sizeof error)) {
    case RD_KAFKA_CONF_UNKNOWN:
      return "librdkafka has no such property";
    case RD_KAFKA_CONF_INVALID: {
      // Its text may quote the value.
      std::string text = error;
      if (!value.empty() && text.find(value) != std::string::npos)
        text = "it is not a value of this property";
      return "librdkafka rejects the value: " + text;
    }
    default:
      return {};
  }
}

Client::Client(const KafkaOptions& options, LogFunction log, std::size_t partitions)
    : plan_(BufferPlan::of(options.buffer, partitions)),
      bootstrap_(options.bootstrap_servers),
      group_(options.group),
      handle_(
          options, RD_KAFKA_CONSUMER, make_conf(options, plan_),
          [this, log = std::move(log)](int level, const std::string& facility,
                                       const std::string& text) {
            // Syslog's error and worse: a refused connection, a failed handshake or login.
            if (level <= 3)
              note_trouble(fmt::format("librdkafka: {}", text));
            // "FAIL" comes as an RD_KAFKA_EVENT_ERROR as well, with the same words.
            if (log && facility != "FAIL")
              log(level, facility, text);
          },
          [this](const std::string& problem) { note_trouble(problem); }),
      client_(handle_.get()) {
  rd_kafka_poll_set_consumer(client_);
}

void Client::note_trouble(const std::string& text) {
  // What comes behind it only guesses why, and is of the same handshake.
  constexpr std::string_view kWhy = "verification callback failed";
  constexpr std::string_view kGuess = "certificate verify failed";
  const std::scoped_lock lock(trouble_mutex_);
  if (text.find(kGuess) == std::string::npos || trouble_.find(kWhy) == std::string::npos)
    trouble_ = text;
}

std::string Client::cause() const {
  const std::scoped_lock lock(trouble_mutex_);
  return trouble_.empty() ? "" : fmt::format(". {}", trouble_);
}

}  // namespace pawl::kafka
