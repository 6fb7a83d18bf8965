// Makes payments for the demo and the figures: a deterministic series with duplicates, and the
// totals that a consumer must reach.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <exception>
#include <fstream>
#include <iostream>
#include <optional>
#include <string>
#include <thread>

#include "mock_cluster.hpp"
#include "payment_series.hpp"
#include "topic_writer.hpp"

namespace payments {
namespace {

struct Arguments {
  std::string bootstrap_servers;
  std::string topic = "payments";
  PaymentSeries::Size size{50'000, 1000, 8, false};
  std::uint64_t seed = 1;
  std::int64_t rate = 0;
  std::size_t value_bytes = 0;
  std::optional<std::int32_t> only_partition;
  std::string totals;
  std::string times;
  bool mock_cluster = false;
};

/// Spreads messages evenly over time.
class Pace {
 public:
  explicit Pace(std::int64_t per_second) : per_second_(per_second) {}
  void wait(std::int64_t sent) const {
    if (per_second_ > 0)
      std::this_thread::sleep_until(begun_ +
                                    std::chrono::microseconds(sent * 1'000'000 / per_second_));
  }

 private:
  std::int64_t per_second_;
  std::chrono::steady_clock::time_point begun_ = std::chrono::steady_clock::now();
};

/// When each message was given to the producer, in microseconds since 1970: event id,time.
class Times {
 public:
  explicit Times(const std::string& path) : path_(path) {
    if (!path.empty())
      file_.open(path);
  }
  void add(const Event& event) {
    if (!file_.is_open())
      return;
    const auto now = std::chrono::system_clock::now().time_since_epoch();
    file_ << event.id << ',' << std::chrono::duration_cast<std::chrono::microseconds>(now).count()
          << '\n';
  }
  void close() {
    file_.close();
    if (!path_.empty() && !file_)
      throw std::runtime_error(fmt::format("cannot write {}", path_));
  }

 private:
  std::string path_;
  std::ofstream file_;
};

void write_totals(const std::string& path, const PaymentSeries& series) {
  std::ofstream file(path);
  for (const auto& [account, totals] : series.totals()) {
    file << account << ',' << totals.balance << ',' << totals.entries << '\n';
  }
  file.close();
  if (!file)
    throw std::runtime_error(fmt::format("cannot write {}", path));
}

void produce(Arguments arguments) {
  TopicWriter writer(arguments.bootstrap_servers, arguments.topic, arguments.rate > 0);
  arguments.size.partitions = writer.ensure_topic(arguments.size.partitions);
  PaymentSeries series(arguments.seed, arguments.size);
  const Pace pace(arguments.rate);
  Times times(arguments.times);
  std::int64_t messages = 0;
  while (auto event = series.next()) {
    if (arguments.only_partition)
      event->partition = arguments.only_partition;
    times.add(*event);
    writer.send(*event, arguments.value_bytes);
    pace.wait(++messages);
  }
  writer.flush();
  times.close();
  if (!arguments.totals.empty())
    write_totals(arguments.totals, series);
  std::cout << fmt::format("messages={}\npayments={}\nduplicates={}\nsum={}\n", messages,
                           arguments.size.payments, series.duplicates(), series.sum());
  std::int32_t partition = 0;
  for (const auto end : writer.ends(arguments.size.partitions)) {
    std::cout << fmt::format("end.{}={}\n", partition++, end);
  }
}

int run(int argc, char** argv) {
  Arguments arguments;
  CLI::App parser{"Produces payments: the same series for the same options, one in a hundred twice",
                  "payments-produce"};
  parser.add_option("-b,--bootstrap-servers", arguments.bootstrap_servers, "Kafka, host:port")
      ->type_name("SERVERS");
  parser.add_option("--topic", arguments.topic, "The topic, which is created if it does not exist")
      ->capture_default_str();
  parser
      .add_option("--partitions", arguments.size.partitions,
                  "Partitions of a topic that is created")
      ->check(CLI::Range(1, 10'000))
      ->capture_default_str();
  parser.add_option("--payments", arguments.size.payments, "Different payments")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  parser.add_option("--accounts", arguments.size.accounts, "Accounts, account-0000 and so on")
      ->check(CLI::Range(1, 10'000))
      ->capture_default_str();
  parser.add_option("--seed", arguments.seed, "Another seed produces other payments")
      ->capture_default_str();
  parser.add_flag("--random-ids", arguments.size.random_ids,
                  "Event IDs without an order, like random UUIDs");
  parser
      .add_option("--value-bytes", arguments.value_bytes,
                  "Pad shorter values to this length with a note")
      ->check(CLI::Range(0, 100'000))
      ->capture_default_str();
  parser
      .add_option("--only-partition", arguments.only_partition,
                  "Send all messages to this partition instead of by account")
      ->check(CLI::Range(0, 9'999));
  parser
      .add_option("--rate", arguments.rate,
                  "Messages per second, each sent individually (0: as fast as possible)")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  parser
      .add_option("--totals", arguments.totals,
                  "Write the expected totals per account: account,balance,entries")
      ->type_name("FILE");
  parser
      .add_option("--times", arguments.times,
                  "Write the time of each message in microseconds since 1970: event ID,time")
      ->type_name("FILE");
  parser.add_flag("--mock-cluster", arguments.mock_cluster,
                  "Serve librdkafka's mock cluster until SIGTERM, and produce nothing");
  CLI11_PARSE(parser, argc, argv);

  if (arguments.mock_cluster) {
    serve_mock_cluster(arguments.topic, arguments.size.partitions);
    return 0;
  }
  if (arguments.bootstrap_servers.empty()) {
    std::cerr << "error: --bootstrap-servers is required\n"
                 "  Usage: payments-produce --bootstrap-servers HOST:PORT\n";
    return 2;
  }
  produce(std::move(arguments));
  return 0;
}

}  // namespace
}  // namespace payments

int main(int argc, char** argv) {
  try {
    return payments::run(argc, argv);
  } catch (const std::exception& error) {
    std::cerr << "error: " << error.what() << ". Check Kafka and --bootstrap-servers\n";
    return 1;
  }
}
