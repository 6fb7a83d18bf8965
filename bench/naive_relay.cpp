// The outbox relay that people write by hand, as a yardstick for `scripts/bench outbox`: SELECT ...
// FOR UPDATE SKIP LOCKED, produce, flush, DELETE, COMMIT. At least once: what dies between flush
// and COMMIT is published again, and nobody can tell. Two of it would mix up the order of a key.
//
//   pawl-bench-naive-relay BOOTSTRAP DATABASE_URL ROWS_AT_ONCE [--follow]
//
// Ends when the table is empty, and prints messages per second; with --follow it looks again every
// 10 ms until it is killed. Table: naive_outbox (id, topic, key, value).
#include <librdkafka/rdkafka.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <pqxx/pqxx>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock;

rd_kafka_t* connect(const std::string& bootstrap, long& undelivered) {
  auto* conf = rd_kafka_conf_new();
  char error[512];
  for (const auto& [name, value] :
       {std::pair<const char*, const char*>{"bootstrap.servers", bootstrap.c_str()},
        {"enable.idempotence", "true"}}) {
    if (rd_kafka_conf_set(conf, name, value, error, sizeof error) != RD_KAFKA_CONF_OK)
      throw std::runtime_error(error);
  }
  rd_kafka_conf_set_opaque(conf, &undelivered);
  rd_kafka_conf_set_dr_msg_cb(conf,
                              [](rd_kafka_t*, const rd_kafka_message_t* message, void* failures) {
                                if (message->err != RD_KAFKA_RESP_ERR_NO_ERROR)
                                  ++*static_cast<long*>(failures);
                              });
  auto* producer = rd_kafka_new(RD_KAFKA_PRODUCER, conf, error, sizeof error);
  if (producer == nullptr)
    throw std::runtime_error(error);
  return producer;
}

/// The topic's handle, which librdkafka makes once for each name and counts.
void produce(rd_kafka_t* producer, const pqxx::row& row) {
  auto* topic = rd_kafka_topic_new(producer, row[1].as<std::string>().c_str(), nullptr);
  const auto key = row[2].view();
  const auto value = row[3].view();
  const int failed = rd_kafka_produce(
      topic, RD_KAFKA_PARTITION_UA, RD_KAFKA_MSG_F_COPY | RD_KAFKA_MSG_F_BLOCK,
      const_cast<char*>(value.data()), value.size(), key.data(), key.size(), nullptr);
  rd_kafka_topic_destroy(topic);
  if (failed != 0)
    throw std::runtime_error(rd_kafka_err2str(rd_kafka_last_error()));
}

/// Returns how many it has published.
int relay(pqxx::connection& connection, rd_kafka_t* producer, const long& undelivered, int most) {
  pqxx::work tx(connection);
  const auto rows = tx.exec(pqxx::prepped{"next"}, pqxx::params{most});
  std::vector<long> ids;
  for (const auto& row : rows) {
    ids.push_back(row[0].as<long>());
    produce(producer, row);
  }
  if (ids.empty())
    return 0;
  if (rd_kafka_flush(producer, 60000) != RD_KAFKA_RESP_ERR_NO_ERROR || undelivered > 0)
    throw std::runtime_error("Kafka has not taken everything");
  tx.exec(pqxx::prepped{"gone"}, pqxx::params{ids});
  tx.commit();
  return static_cast<int>(ids.size());
}

}  // namespace

int main(int argc, char** argv) {
  const bool follow = argc == 5 && std::string_view(argv[4]) == "--follow";
  if (argc != 4 && !follow) {
    std::fprintf(stderr, "usage: %s BOOTSTRAP DATABASE_URL ROWS_AT_ONCE [--follow]\n", argv[0]);
    return 2;
  }
  try {
    const int most = std::atoi(argv[3]);
    pqxx::connection connection(argv[2]);
    connection.prepare("next",
                       "SELECT id, topic, key, value FROM naive_outbox ORDER BY id LIMIT $1"
                       " FOR UPDATE SKIP LOCKED");
    connection.prepare("gone", "DELETE FROM naive_outbox WHERE id = ANY ($1::bigint[])");
    long undelivered = 0;
    auto* producer = connect(argv[1], undelivered);
    // The first finds out what the producer must know of topic and broker.
    const long first = relay(connection, producer, undelivered, most);
    const auto begun = Clock::now();
    long published = 0;
    while (true) {
      const int now = relay(connection, producer, undelivered, most);
      published += now;
      if (now == 0 && !follow)
        break;
      if (now == 0)
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    const auto seconds = std::chrono::duration<double>(Clock::now() - begun).count();
    std::printf("messages=%ld rate=%.1f\n", first + published,
                static_cast<double>(published) / seconds);
    std::fflush(stdout);
    std::_Exit(0);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
