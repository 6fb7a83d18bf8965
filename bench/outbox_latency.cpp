// How long a message takes from the COMMIT that publishes it to a read_committed reader, at a
// steady rate. Both ends are in this process, so that one clock tells.
//
//   pawl-bench-outbox-latency BOOTSTRAP DATABASE_URL TOPIC PER_SECOND SECONDS STATEMENT
//
// STATEMENT publishes one message in a transaction of its own: $1 is the topic, $2 a key, $3 the
// value. Prints milliseconds as "p50=... p99=... p999=...", of all messages but those of the first
// two seconds.
#include <librdkafka/rdkafka.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <pqxx/pqxx>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock;
using Moments = std::vector<std::atomic<std::int64_t>>;  // microseconds; 0: not yet

constexpr int kWriters = 4;
constexpr int kWarmUp = 2;  // seconds
constexpr auto kLastMessage = std::chrono::seconds(60);

std::int64_t now() {
  return std::chrono::duration_cast<std::chrono::microseconds>(Clock::now().time_since_epoch())
      .count();
}

class Reader {
 public:
  Reader(const std::string& bootstrap, const std::string& topic) {
    auto* conf = rd_kafka_conf_new();
    char error[512];
    for (const auto& [name, value] :
         {std::pair<const char*, const char*>{"bootstrap.servers", bootstrap.c_str()},
          {"group.id", "pawl-bench-outbox-latency"},
          {"isolation.level", "read_committed"},
          {"enable.auto.commit", "false"},
          {"fetch.wait.max.ms", "10"}}) {
      if (rd_kafka_conf_set(conf, name, value, error, sizeof error) != RD_KAFKA_CONF_OK)
        throw std::runtime_error(error);
    }
    consumer_ = rd_kafka_new(RD_KAFKA_CONSUMER, conf, error, sizeof error);
    if (consumer_ == nullptr)
      throw std::runtime_error(error);
    rd_kafka_poll_set_consumer(consumer_);
    const rd_kafka_metadata_t* metadata = nullptr;
    auto* handle = rd_kafka_topic_new(consumer_, topic.c_str(), nullptr);
    if (rd_kafka_metadata(consumer_, 0, handle, &metadata, 10000) != RD_KAFKA_RESP_ERR_NO_ERROR ||
        metadata->topic_cnt != 1 || metadata->topics[0].partition_cnt == 0)
      throw std::runtime_error("there is no topic " + topic);
    auto* partitions = rd_kafka_topic_partition_list_new(metadata->topics[0].partition_cnt);
    for (int p = 0; p < metadata->topics[0].partition_cnt; ++p)
      rd_kafka_topic_partition_list_add(partitions, topic.c_str(), p)->offset =
          RD_KAFKA_OFFSET_BEGINNING;
    rd_kafka_assign(consumer_, partitions);
    rd_kafka_topic_partition_list_destroy(partitions);
    rd_kafka_metadata_destroy(metadata);
    rd_kafka_topic_destroy(handle);
  }

  /// The number that the next message has for its value; -1: none came for a while.
  long next() {
    const std::unique_ptr<rd_kafka_message_t, decltype(&rd_kafka_message_destroy)> message(
        rd_kafka_consumer_poll(consumer_, 100), &rd_kafka_message_destroy);
    if (!message || message->err != RD_KAFKA_RESP_ERR_NO_ERROR)
      return -1;
    return std::stol(std::string(static_cast<const char*>(message->payload), message->len));
  }

 private:
  rd_kafka_t* consumer_ = nullptr;
};

/// Every kWriters-th message from `first` on, each at its time.
void publish(const char* url, const char* statement, const std::string& topic, int first,
             int per_second, std::int64_t begun, Moments& committed) {
  pqxx::connection connection(url);
  connection.prepare("publish", statement);
  for (auto number = static_cast<std::size_t>(first); number < committed.size();
       number += kWriters) {
    const auto due = begun + static_cast<std::int64_t>(number) * 1000000 / per_second;
    if (const auto early = due - now(); early > 0)
      std::this_thread::sleep_for(std::chrono::microseconds(early));
    pqxx::nontransaction tx(connection);
    tx.exec(pqxx::prepped{"publish"},
            pqxx::params{topic, "key " + std::to_string(number % 1000), std::to_string(number)});
    committed[number] = now();
  }
}

double part(const std::vector<double>& sorted, double of) {
  return sorted[std::min(static_cast<std::size_t>(static_cast<double>(sorted.size()) * of),
                         sorted.size() - 1)];
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 7) {
    std::fprintf(stderr, "usage: %s BOOTSTRAP DATABASE_URL TOPIC PER_SECOND SECONDS STATEMENT\n",
                 argv[0]);
    return 2;
  }
  try {
    const std::string topic = argv[3];
    const int per_second = std::atoi(argv[4]);
    const auto count = static_cast<std::size_t>(per_second) *
                       static_cast<std::size_t>(std::atoi(argv[5]) + kWarmUp);
    Moments committed(count);
    std::vector<std::int64_t> received(count);
    Reader reader(argv[1], topic);
    std::vector<std::thread> writers;
    const auto begun = now() + 500000;
    for (int i = 0; i < kWriters; ++i) {
      writers.emplace_back([&, i] {
        try {
          publish(argv[2], argv[6], topic, i, per_second, begun, committed);
        } catch (const std::exception& error) {
          std::fprintf(stderr, "%s\n", error.what());
          std::_Exit(1);
        }
      });
    }
    std::size_t seen = 0;
    auto last = Clock::now();
    while (seen < count) {
      const auto number = reader.next();
      if (number >= 0 && received.at(static_cast<std::size_t>(number)) == 0) {
        received[static_cast<std::size_t>(number)] = now();
        last = Clock::now();
        ++seen;
      } else if (Clock::now() - last > kLastMessage) {
        throw std::runtime_error("only " + std::to_string(seen) + " messages came");
      }
    }
    for (auto& writer : writers)
      writer.join();
    std::vector<double> waited;
    for (auto i = static_cast<std::size_t>(per_second) * kWarmUp; i < count; ++i) {
      // A reader may be told before the writer is.
      waited.push_back(static_cast<double>(std::max<std::int64_t>(received[i] - committed[i], 0)) /
                       1000);
    }
    std::sort(waited.begin(), waited.end());
    std::printf("p50=%.2f p99=%.2f p999=%.2f\n", part(waited, 0.5), part(waited, 0.99),
                part(waited, 0.999));
    std::fflush(stdout);
    std::_Exit(0);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
