// The pool of threads that people write by hand where each message calls somebody, as a yardstick
// for `scripts/bench calls`: one thread polls, N others call and then INSERT the response under a
// unique key, and Kafka learns the end of what is finished without a gap. Twice is called whatever
// was in hand when it died, or what Kafka has twice; two that share a group may call at once.
//
//   pawl-bench-naive-calls BOOTSTRAP TOPIC PARTITIONS DATABASE_URL THREADS CONNECTIONS HOW NUMBER
//
// HOW is http, with the port of an API, or wait, with the milliseconds for which a thread waits
// instead. CONNECTIONS are those to PostgreSQL. Ends at the end of the topic.
#include <librdkafka/rdkafka.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <memory>
#include <mutex>
#include <pqxx/pqxx>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace {

constexpr auto kCommitEvery = std::chrono::milliseconds(100);

using Record = std::unique_ptr<rd_kafka_message_t, decltype(&rd_kafka_message_destroy)>;

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

/// A connection that stays open, of one thread.
class Api {
 public:
  explicit Api(int port) : socket_(socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    address.sin_port = htons(static_cast<std::uint16_t>(port));
    if (connect(socket_, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0)
      throw std::runtime_error("the API cannot be reached");
    const int on = 1;
    setsockopt(socket_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  }
  ~Api() { close(socket_); }
  Api(const Api&) = delete;
  Api& operator=(const Api&) = delete;

  std::string call(const std::string& key, std::string_view body) {
    const auto text =
        "POST /charges HTTP/1.1\r\nHost: api\r\nIdempotency-Key: " + key +
        "\r\nContent-Type: application/json\r\nContent-Length: " + std::to_string(body.size()) +
        "\r\n\r\n" + std::string(body);
    if (send(socket_, text.data(), text.size(), MSG_NOSIGNAL) != static_cast<ssize_t>(text.size()))
      throw std::runtime_error("the request was not sent whole");
    const std::string field = "Content-Length: ";
    std::string received;
    std::array<char, 4096> buffer;
    while (true) {
      const auto got = recv(socket_, buffer.data(), buffer.size(), 0);
      if (got <= 0)
        throw std::runtime_error("the answer was cut off");
      received.append(buffer.data(), static_cast<std::size_t>(got));
      const auto head = received.find("\r\n\r\n");
      if (head == std::string::npos)
        continue;
      const auto size = std::stoul(received.substr(received.find(field) + field.size()));
      if (received.size() < head + 4 + size)
        continue;
      if (!received.starts_with("HTTP/1.1 200"))
        throw std::runtime_error("the API refuses");
      return received.substr(head + 4);
    }
  }

 private:
  int socket_;
};

/// A few connections for many threads.
class Database {
 public:
  Database(const std::string& url, int connections) {
    for (int i = 0; i < connections; ++i) {
      free_.push_back(std::make_unique<pqxx::connection>(url));
      free_.back()->prepare("record",
                            "INSERT INTO naive_calls (event_id, response) VALUES ($1, $2)"
                            " ON CONFLICT DO NOTHING");
    }
  }

  void record(const std::string& key, const std::string& response) {
    std::unique_lock lock(mutex_);
    is_free_.wait(lock, [this] { return !free_.empty(); });
    auto connection = std::move(free_.back());
    free_.pop_back();
    lock.unlock();
    pqxx::nontransaction(*connection).exec(pqxx::prepped{"record"}, pqxx::params{key, response});
    lock.lock();
    free_.push_back(std::move(connection));
    is_free_.notify_one();
  }

 private:
  std::mutex mutex_;
  std::condition_variable is_free_;
  std::vector<std::unique_ptr<pqxx::connection>> free_;
};

/// What is in hand of each partition, and what waits for a thread.
class Work {
 public:
  Work(int partitions, std::size_t most)
      : most_(most), partitions_(static_cast<std::size_t>(partitions)) {}

  void give(Record record) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return waiting_.size() < most_; });
    of(*record).in_hand.push_back({record->offset, false});
    waiting_.push_back(std::move(record));
    given_.notify_one();
  }

  Record take() {
    std::unique_lock lock(mutex_);
    given_.wait(lock, [this] { return !waiting_.empty(); });
    auto record = std::move(waiting_.front());
    waiting_.pop_front();
    changed_.notify_all();
    return record;
  }

  void finish(const rd_kafka_message_t& message) {
    const std::scoped_lock lock(mutex_);
    auto& partition = of(message);
    for (auto& [offset, done] : partition.in_hand)
      done = done || offset == message.offset;
    while (!partition.in_hand.empty() && partition.in_hand.front().done) {
      partition.finished = partition.in_hand.front().offset + 1;
      partition.in_hand.pop_front();
    }
    ++count_;
    changed_.notify_all();
  }

  long wait_for_all() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] {
      for (const auto& partition : partitions_) {
        if (!partition.in_hand.empty())
          return false;
      }
      return true;
    });
    return count_;
  }

  void commit(rd_kafka_t* consumer, const std::string& topic, bool in_background) {
    auto* offsets = rd_kafka_topic_partition_list_new(static_cast<int>(partitions_.size()));
    {
      const std::scoped_lock lock(mutex_);
      for (std::size_t i = 0; i < partitions_.size(); ++i) {
        if (partitions_[i].finished > 0)
          rd_kafka_topic_partition_list_add(offsets, topic.c_str(), static_cast<int>(i))->offset =
              partitions_[i].finished;
      }
    }
    if (offsets->cnt > 0)
      rd_kafka_commit(consumer, offsets, in_background ? 1 : 0);
    rd_kafka_topic_partition_list_destroy(offsets);
  }

 private:
  struct InHand {
    std::int64_t offset;
    bool done;
  };
  struct Partition {
    std::deque<InHand> in_hand;
    std::int64_t finished = 0;
  };

  Partition& of(const rd_kafka_message_t& message) {
    return partitions_.at(static_cast<std::size_t>(message.partition));
  }

  const std::size_t most_;
  std::mutex mutex_;
  std::condition_variable given_;
  std::condition_variable changed_;
  std::vector<Partition> partitions_;
  std::deque<Record> waiting_;
  long count_ = 0;
};

rd_kafka_t* connect_to(const std::string& bootstrap, const std::string& topic, int partitions) {
  auto* conf = rd_kafka_conf_new();
  char error[512];
  const auto group = "naive-calls-" + std::to_string(getpid());
  for (const auto& [name, value] :
       {std::pair<const char*, const char*>{"bootstrap.servers", bootstrap.c_str()},
        {"group.id", group.c_str()},
        {"enable.auto.commit", "false"},
        {"enable.partition.eof", "true"},
        {"isolation.level", "read_committed"}}) {
    if (rd_kafka_conf_set(conf, name, value, error, sizeof error) != RD_KAFKA_CONF_OK)
      throw std::runtime_error(error);
  }
  auto* consumer = rd_kafka_new(RD_KAFKA_CONSUMER, conf, error, sizeof error);
  if (consumer == nullptr)
    throw std::runtime_error(error);
  rd_kafka_poll_set_consumer(consumer);
  auto* all = rd_kafka_topic_partition_list_new(partitions);
  for (int p = 0; p < partitions; ++p)
    rd_kafka_topic_partition_list_add(all, topic.c_str(), p)->offset = RD_KAFKA_OFFSET_BEGINNING;
  rd_kafka_assign(consumer, all);
  rd_kafka_topic_partition_list_destroy(all);
  return consumer;
}

void serve(Work& work, Database& database, bool calls, int number) {
  const auto api = calls ? std::make_unique<Api>(number) : nullptr;
  while (true) {
    const auto record = work.take();
    const auto key = event_id(*record);
    std::string response = R"({"done":true})";
    if (api)
      response = api->call(key, {static_cast<const char*>(record->payload), record->len});
    else if (number > 0)
      std::this_thread::sleep_for(std::chrono::milliseconds(number));
    database.record(key, response);
    work.finish(*record);
  }
}

}  // namespace

int main(int argc, char** argv) {
  const std::string_view how = argc == 9 ? argv[7] : "";
  if (how != "http" && how != "wait") {
    std::fprintf(stderr,
                 "usage: %s BOOTSTRAP TOPIC PARTITIONS DATABASE_URL THREADS CONNECTIONS"
                 " (http PORT | wait MILLISECONDS)\n",
                 argv[0]);
    return 2;
  }
  try {
    const std::string topic = argv[2];
    const int partitions = std::atoi(argv[3]);
    const auto threads = static_cast<std::size_t>(std::atoi(argv[5]));
    {
      pqxx::connection connection(argv[4]);
      pqxx::nontransaction(connection)
          .exec(
              "CREATE TABLE IF NOT EXISTS naive_calls (event_id text PRIMARY KEY, response text,"
              " created_at timestamptz NOT NULL DEFAULT now())");
    }
    Database database(argv[4], std::atoi(argv[6]));
    Work work(partitions, 2 * threads);
    for (std::size_t i = 0; i < threads; ++i) {
      std::thread([&] {
        try {
          serve(work, database, how == "http", std::atoi(argv[8]));
        } catch (const std::exception& error) {
          std::fprintf(stderr, "%s\n", error.what());
          std::_Exit(1);
        }
      }).detach();
    }
    auto* consumer = connect_to(argv[1], topic, partitions);
    auto committed = std::chrono::steady_clock::now();
    for (int ended = 0; ended < partitions;) {
      Record record(rd_kafka_consumer_poll(consumer, 100), &rd_kafka_message_destroy);
      if (record && record->err == RD_KAFKA_RESP_ERR__PARTITION_EOF)
        ++ended;
      else if (record && record->err == RD_KAFKA_RESP_ERR_NO_ERROR)
        work.give(std::move(record));
      if (const auto now = std::chrono::steady_clock::now(); now - committed > kCommitEvery) {
        work.commit(consumer, topic, true);
        committed = now;
      }
    }
    const long count = work.wait_for_all();
    work.commit(consumer, topic, false);
    std::printf("%ld messages\n", count);
    std::fflush(stdout);
    // The threads wait for more.
    std::_Exit(0);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
