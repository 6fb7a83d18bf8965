// The loop that people write by hand, as a yardstick for scripts/bench: a thread and a connection a
// partition, prepared statements, one round trip a statement. It is as correct as such loops get
// (key, effects and offset in one transaction), and as incomplete: no groups, no fencing, no
// retries.
//
//   pawl-bench-naive BOOTSTRAP TOPIC PARTITIONS DATABASE_URL [--follow]
//
// Ends at the end of the topic; with --follow it waits there for more, until it is killed.
// Tables: ledger and accounts of apps/payments; its own keys and offsets tables are made here.
#include <librdkafka/rdkafka.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <nlohmann/json.hpp>
#include <pqxx/pqxx>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace {

struct Kafka {
  rd_kafka_t* consumer = nullptr;
  rd_kafka_topic_t* topic = nullptr;
};

Kafka connect(const std::string& bootstrap, const std::string& topic) {
  auto* conf = rd_kafka_conf_new();
  char error[512];
  for (const auto& [name, value] :
       {std::pair<const char*, const char*>{"bootstrap.servers", bootstrap.c_str()},
        {"enable.partition.eof", "true"},
        {"isolation.level", "read_committed"}}) {
    if (rd_kafka_conf_set(conf, name, value, error, sizeof error) != RD_KAFKA_CONF_OK) {
      throw std::runtime_error(error);
    }
  }
  Kafka kafka;
  kafka.consumer = rd_kafka_new(RD_KAFKA_CONSUMER, conf, error, sizeof error);
  if (kafka.consumer == nullptr)
    throw std::runtime_error(error);
  kafka.topic = rd_kafka_topic_new(kafka.consumer, topic.c_str(), nullptr);
  return kafka;
}

void prepare(pqxx::connection& connection) {
  connection.prepare("claim", "INSERT INTO naive_keys (key) VALUES ($1) ON CONFLICT DO NOTHING");
  connection.prepare("ledger",
                     "INSERT INTO ledger (event_id, account, amount) VALUES ($1, $2, $3)");
  connection.prepare(
      "account", "UPDATE accounts SET balance = balance + $2, entries = entries + 1 WHERE id = $1");
  connection.prepare("offset", "UPDATE naive_offsets SET processed = $2 WHERE partition = $1");
}

std::string event_id(const rd_kafka_message_t& message) {
  rd_kafka_headers_t* headers = nullptr;
  const void* value = nullptr;
  std::size_t size = 0;
  if (rd_kafka_message_headers(&message, &headers) != RD_KAFKA_RESP_ERR_NO_ERROR ||
      rd_kafka_header_get_last(headers, "event-id", &value, &size) != RD_KAFKA_RESP_ERR_NO_ERROR) {
    throw std::runtime_error("a message has no event-id");
  }
  return {static_cast<const char*>(value), size};
}

void apply(pqxx::connection& connection, std::int32_t partition,
           const rd_kafka_message_t& message) {
  const auto key = event_id(message);
  pqxx::work tx(connection);
  if (tx.exec(pqxx::prepped{"claim"}, pqxx::params{key}).affected_rows() == 1) {
    const auto payment = nlohmann::json::parse(
        std::string_view(static_cast<const char*>(message.payload), message.len));
    const auto& account = payment.at("account").get_ref<const std::string&>();
    const auto amount = payment.at("amount").get<std::int64_t>();
    tx.exec(pqxx::prepped{"ledger"}, pqxx::params{key, account, amount});
    tx.exec(pqxx::prepped{"account"}, pqxx::params{account, amount});
  }
  tx.exec(pqxx::prepped{"offset"}, pqxx::params{partition, message.offset});
  tx.commit();
}

void consume(const Kafka& kafka, std::int32_t partition, const std::string& url, bool follow,
             std::atomic<long>& count) {
  pqxx::connection connection(url);
  prepare(connection);
  if (rd_kafka_consume_start(kafka.topic, partition, RD_KAFKA_OFFSET_BEGINNING) != 0) {
    throw std::runtime_error("cannot start a partition");
  }
  while (true) {
    const std::unique_ptr<rd_kafka_message_t, decltype(&rd_kafka_message_destroy)> message(
        rd_kafka_consume(kafka.topic, partition, 1000), &rd_kafka_message_destroy);
    if (!message)
      continue;
    if (message->err == RD_KAFKA_RESP_ERR__PARTITION_EOF && !follow)
      break;
    if (message->err != RD_KAFKA_RESP_ERR_NO_ERROR)
      continue;
    apply(connection, partition, *message);
    ++count;
  }
  rd_kafka_consume_stop(kafka.topic, partition);
}

}  // namespace

int main(int argc, char** argv) {
  const bool follow = argc == 6 && std::string_view(argv[5]) == "--follow";
  if (argc != 5 && !follow) {
    std::fprintf(stderr, "usage: %s BOOTSTRAP TOPIC PARTITIONS DATABASE_URL [--follow]\n", argv[0]);
    return 2;
  }
  try {
    const int partitions = std::atoi(argv[3]);
    const std::string url = argv[4];
    {
      pqxx::connection connection(url);
      pqxx::work tx(connection);
      tx.exec("CREATE TABLE IF NOT EXISTS naive_keys (key text PRIMARY KEY)");
      tx.exec(
          "CREATE TABLE IF NOT EXISTS naive_offsets (partition int PRIMARY KEY, processed bigint)");
      tx.exec(
          "INSERT INTO naive_offsets SELECT g, -1 FROM generate_series(0, $1 - 1) g"
          " ON CONFLICT DO NOTHING",
          pqxx::params{partitions});
      tx.commit();
    }
    const auto kafka = connect(argv[1], argv[2]);
    std::atomic<long> count{0};
    std::vector<std::thread> threads;
    for (int p = 0; p < partitions; ++p) {
      threads.emplace_back([&, p] {
        try {
          consume(kafka, p, url, follow, count);
        } catch (const std::exception& error) {
          std::fprintf(stderr, "partition %d: %s\n", p, error.what());
          std::_Exit(1);
        }
      });
    }
    for (auto& thread : threads)
      thread.join();
    std::printf("%ld messages\n", count.load());
    std::fflush(stdout);
    // The yardstick ends with its work; librdkafka's orderly close is not part of it.
    std::_Exit(0);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
