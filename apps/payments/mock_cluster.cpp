#include "mock_cluster.hpp"

#include <librdkafka/rdkafka.h>
#include <librdkafka/rdkafka_mock.h>

#include <array>
#include <csignal>
#include <iostream>
#include <stdexcept>

#include "topic_writer.hpp"

namespace payments {

void serve_mock_cluster(const std::string& topic, std::int32_t partitions) {
  sigset_t stop;
  sigemptyset(&stop);
  sigaddset(&stop, SIGTERM);
  sigaddset(&stop, SIGINT);
  pthread_sigmask(SIG_BLOCK, &stop, nullptr);

  std::array<char, 512> why{};
  // The mock needs a client to live in; this one does nothing else.
  const KafkaHandle home(
      rd_kafka_new(RD_KAFKA_PRODUCER, rd_kafka_conf_new(), why.data(), why.size()));
  if (!home)
    throw std::runtime_error(why.data());
  const std::unique_ptr<rd_kafka_mock_cluster_t, Destroyer<rd_kafka_mock_cluster_destroy>> cluster(
      rd_kafka_mock_cluster_new(home.get(), 1));
  if (!cluster)
    throw std::runtime_error("librdkafka's mock cluster does not start");
  rd_kafka_mock_group_initial_rebalance_delay_ms(cluster.get(), 0);
  // The mock names broker 0 as its controller, and counts its brokers from 1.
  auto code = rd_kafka_mock_broker_add(cluster.get(), 0);
  if (code != RD_KAFKA_RESP_ERR_NO_ERROR)
    throw std::runtime_error(rd_kafka_err2str(code));
  code = rd_kafka_mock_topic_create(cluster.get(), topic.c_str(), partitions, 1);
  if (code != RD_KAFKA_RESP_ERR_NO_ERROR)
    throw std::runtime_error(rd_kafka_err2str(code));

  std::cout << rd_kafka_mock_cluster_bootstraps(cluster.get()) << std::endl;
  int signal = 0;
  sigwait(&stop, &signal);
}

}  // namespace payments
