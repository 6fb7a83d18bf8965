// How a client of Kafka ends while a name server does not respond: the thread of a broker is in
// getaddrinfo() then, and librdkafka's own calls wait for that thread without a limit.
#include <dlfcn.h>
#include <netdb.h>

#include <algorithm>
#include <condition_variable>
#include <functional>
#include <future>
#include <mutex>
#include <pawl/testing/kafka_broker.hpp>

#include "kafka/batch_producer.hpp"
#include "kafka/bounded_call.hpp"
#include "kafka/producer.hpp"
#include "prelude.hpp"

using pawl::kafka::BatchProducer;
using pawl::kafka::calls_in_progress;

namespace {

/// Much longer than the limits of pawl, and much shorter than a name server may be silent.
constexpr auto kInTime = 60s;
/// No process listens there.
constexpr const char* kNobody = "127.0.0.1:9";

std::mutex mutex;
std::condition_variable changed;
std::string silent_port;  // guarded by mutex; empty: all requests get a response
int requests = 0;         // guarded by mutex; that wait for a response

/// Looking up an address ("127.0.0.1:9") waits until respond().
class SilentNameServer {
 public:
  explicit SilentNameServer(const std::string& address) {
    const std::scoped_lock lock(mutex);
    silent_port = address.substr(address.rfind(':') + 1);
  }
  ~SilentNameServer() { respond(); }
  SilentNameServer(const SilentNameServer&) = delete;
  SilentNameServer& operator=(const SilentNameServer&) = delete;

  void wait_for_request() const {
    std::unique_lock lock(mutex);
    REQUIRE(changed.wait_for(lock, kInTime, [] { return requests > 0; }));
  }
  void respond() const {
    {
      const std::scoped_lock lock(mutex);
      silent_port.clear();
    }
    changed.notify_all();
  }
};

void wait_for_calls() {
  pawl::testing::wait_until([] { return calls_in_progress() == 0; }, kInTime,
                            "the calls that were left behind to return");
}

class Log {
 public:
  pawl::kafka::LogFunction function() {
    return [this](int, const std::string&, const std::string& text) {
      const std::scoped_lock lock(mutex_);
      lines_.push_back(text);
    };
  }
  std::vector<std::string> lines() const {
    const std::scoped_lock lock(mutex_);
    return lines_;
  }

 private:
  mutable std::mutex mutex_;
  std::vector<std::string> lines_;  // guarded by mutex_
};

pawl::KafkaOptions options_of(const std::string& bootstrap) {
  pawl::KafkaOptions options;
  options.bootstrap_servers = bootstrap;
  options.group = "silent";
  return options;
}

struct Kind {
  const char* name;
  std::function<std::shared_ptr<void>(const pawl::KafkaOptions&, pawl::kafka::LogFunction)> create;
};

const Kind kKinds[] = {
    {"consumer",
     [](const auto& options, auto log) {
       return std::make_shared<pawl::kafka::Client>(options, std::move(log));
     }},
    {"producer",
     [](const auto& options, auto log) {
       return std::make_shared<pawl::kafka::Producer>(options, 0, std::move(log));
     }},
    {"producer of batches",
     [](const auto& options, auto log) {
       return std::make_shared<BatchProducer>(options, BatchProducer::Settings{}, std::move(log));
     }},
};

bool about_closing(const std::string& line) {
  return line.starts_with("a client did not close within 5 s");
}

}  // namespace

// Stands before libc's in this program, librdkafka included.
extern "C" int getaddrinfo(const char* node, const char* service, const addrinfo* hints,
                           addrinfo** found) {
  {
    std::unique_lock lock(mutex);
    if (service != nullptr && service == silent_port) {
      ++requests;
      changed.notify_all();
      changed.wait(lock, [] { return silent_port.empty(); });
      --requests;
    }
  }
  static const auto next =
      reinterpret_cast<decltype(&::getaddrinfo)>(::dlsym(RTLD_NEXT, "getaddrinfo"));
  return next(node, service, hints, found);
}

TEST_CASE("a client that cannot close in time is left behind, and logs that once") {
  const auto& kind = kKinds[GENERATE(range(0, 3))];
  INFO(kind.name);
  Log log;
  const SilentNameServer names(kNobody);
  auto client = kind.create(options_of(kNobody), log.function());
  names.wait_for_request();

  auto closing = std::async(std::launch::async, [&client] { client.reset(); });
  CHECK(closing.wait_for(kInTime) == std::future_status::ready);
  CHECK(calls_in_progress() == 1);
  const auto lines = log.lines();
  CHECK(std::ranges::count_if(lines, about_closing) == 1);

  // librdkafka reports the connection that is refused now, but the log may be gone.
  names.respond();
  wait_for_calls();
  CHECK(log.lines() == lines);
}

TEST_CASE("a client that closes in time logs nothing about that") {
  const auto& kind = kKinds[GENERATE(range(0, 3))];
  INFO(kind.name);
  Log log;
  kind.create(options_of(kNobody), log.function()).reset();
  CHECK(calls_in_progress() == 0);
  CHECK(std::ranges::none_of(log.lines(), about_closing));
}

TEST_CASE("a batch is given up in time while a name server does not respond") {
  const SilentNameServer names(kNobody);
  BatchProducer producer(options_of(kNobody), {}, {});
  names.wait_for_request();
  producer.begin();
  producer.send("payments", {"key", "value", {}}, 1);
  auto commit = std::async(std::launch::async, [&producer] { producer.commit({}, 1s); });
  CHECK(commit.wait_for(kInTime) == std::future_status::ready);
  names.respond();
  CHECK_THROWS_AS(commit.get(), pawl::kafka::Undelivered);
}

// rd_kafka_abort_transaction ignores its timeout.
TEST_CASE("the abort of a transaction is left behind while a name server does not respond") {
  // The client of the fixture uses another listener, which is not silent.
  pawl::testing::KafkaBroker broker({.listeners = {{"OTHER", "PLAINTEXT"}}});
  const auto bootstrap = broker.bootstrap("OTHER");
  auto producer = std::make_unique<BatchProducer>(
      options_of(bootstrap), BatchProducer::Settings{.id = "aborted"}, pawl::kafka::LogFunction());
  producer->init(kInTime);
  producer->begin();
  // librdkafka rejects it without a broker, so the transaction is aborted.
  const std::string large(2'000'000, 'x');
  producer->send("payments", {"key", large, {}}, 1);
  const SilentNameServer names(bootstrap);
  broker.kill();
  names.wait_for_request();

  auto commit = std::async(std::launch::async, [&producer] {
    try {
      producer->commit({"group", {"state", 0}, {1, "token"}}, 1s);
    } catch (const pawl::kafka::KafkaError& error) {
      // As its owner does.
      producer.reset();
      return std::string(error.what());
    }
    return "it was committed"s;
  });
  CHECK(commit.wait_for(kInTime) == std::future_status::ready);
  CHECK(calls_in_progress() == 1);
  names.respond();
  CHECK(commit.get() == "aborting a Kafka transaction: Kafka did not respond in time");
  wait_for_calls();
}
