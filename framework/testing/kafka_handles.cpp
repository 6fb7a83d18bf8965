#include "testing/kafka_handles.hpp"

#include <fmt/format.h>

#include <array>
#include <pawl/testing/wait.hpp>
#include <stdexcept>

namespace pawl::testing {

void require(rd_kafka_resp_err_t error, const std::string& what, const char* detail) {
  if (error != RD_KAFKA_RESP_ERR_NO_ERROR) {
    throw std::runtime_error{fmt::format(
        "{}: {} ({}). Is the broker running, and is the name correct?", what,
        detail != nullptr ? detail : rd_kafka_err2str(error), rd_kafka_err2name(error))};
  }
}

void require(ErrorHandle error, const std::string& what) {
  if (error) {
    require(rd_kafka_error_code(error.get()), what, rd_kafka_error_string(error.get()));
  }
}

KafkaHandle make_client(rd_kafka_type_t type, const std::string& bootstrap,
                        const std::map<std::string, std::string>& properties) {
  std::array<char, 512> reason{};
  std::map<std::string, std::string> all{{"bootstrap.servers", bootstrap},
                                         {"log_level", "2"},
                                         {"topic.metadata.refresh.interval.ms", "500"},
                                         {"reconnect.backoff.max.ms", "500"},
                                         {"allow.auto.create.topics", "false"}};
  all.erase("allow.auto.create.topics");  // a consumer's property
  for (const auto& [name, value] : properties) {
    all[name] = value;
  }
  ConfHandle conf{rd_kafka_conf_new()};
  for (const auto& [name, value] : all) {
    if (rd_kafka_conf_set(conf.get(), name.c_str(), value.c_str(), reason.data(), reason.size()) !=
        RD_KAFKA_CONF_OK) {
      throw std::runtime_error{fmt::format("{}. Fix the property {}", reason.data(), name)};
    }
  }
  rd_kafka_conf_set_events(conf.get(), RD_KAFKA_EVENT_DR);
  KafkaHandle client{rd_kafka_new(type, conf.get(), reason.data(), reason.size())};
  if (!client) {
    throw std::runtime_error{fmt::format("cannot create a Kafka client: {}", reason.data())};
  }
  static_cast<void>(conf.release());  // the client's now
  return client;
}

namespace {

/// The group's coordinator is just being elected or loaded, as right after a broker's start.
bool passes_by_itself(rd_kafka_resp_err_t error) {
  return error == RD_KAFKA_RESP_ERR_COORDINATOR_LOAD_IN_PROGRESS ||
         error == RD_KAFKA_RESP_ERR_COORDINATOR_NOT_AVAILABLE ||
         error == RD_KAFKA_RESP_ERR_NOT_COORDINATOR;
}

}  // namespace

EventHandle admin_request(
    rd_kafka_t* client, rd_kafka_admin_op_t operation, const std::string& what,
    const std::function<void(rd_kafka_AdminOptions_t*, rd_kafka_queue_t*)>& send,
    const std::function<void(rd_kafka_AdminOptions_t*)>& configure) {
  constexpr int kTimeoutMs = 30'000;
  std::array<char, 256> reason{};
  const AdminOptionsHandle options{rd_kafka_AdminOptions_new(client, operation)};
  require(rd_kafka_AdminOptions_set_request_timeout(options.get(), kTimeoutMs, reason.data(),
                                                    reason.size()),
          what, reason.data());
  if (configure) {
    configure(options.get());
  }
  const QueueHandle queue{rd_kafka_queue_new(client)};
  EventHandle event;
  wait_until(
      [&] {
        send(options.get(), queue.get());
        event.reset(rd_kafka_queue_poll(queue.get(), kTimeoutMs + 5'000));
        if (!event) {
          throw Timeout{what + ": no response from the broker. Is it running?"};
        }
        return !passes_by_itself(rd_kafka_event_error(event.get()));
      },
      std::chrono::milliseconds{kTimeoutMs}, what + ": a coordinator");
  require(rd_kafka_event_error(event.get()), what, rd_kafka_event_error_string(event.get()));
  return event;
}

std::int64_t end_offset(rd_kafka_t* client, const std::string& topic, int partition,
                        rd_kafka_IsolationLevel_t isolation) {
  const std::string what = fmt::format("reading the end offset of {}[{}]", topic, partition);
  const auto wanted = kafka::new_list();
  rd_kafka_topic_partition_list_add(wanted.get(), topic.c_str(), partition)->offset =
      RD_KAFKA_OFFSET_SPEC_LATEST;
  const EventHandle event = admin_request(
      client, RD_KAFKA_ADMIN_OP_LISTOFFSETS, what,
      [&](auto* options, auto* queue) {
        rd_kafka_ListOffsets(client, wanted.get(), options, queue);
      },
      [&](auto* options) {
        require(ErrorHandle{rd_kafka_AdminOptions_set_isolation_level(options, isolation)}, what);
      });
  std::size_t count = 0;
  const auto* const* infos =
      rd_kafka_ListOffsets_result_infos(rd_kafka_event_ListOffsets_result(event.get()), &count);
  const auto* answer = rd_kafka_ListOffsetsResultInfo_topic_partition(infos[0]);
  require(answer->err, what);
  return answer->offset;
}

}  // namespace pawl::testing
