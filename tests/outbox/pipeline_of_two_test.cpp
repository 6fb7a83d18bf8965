// The example of docs/recipes-outbox.md, "Exactly once from end to end": two pawls with a database
// each and Kafka between them, while processes and servers are killed.
#include <fmt/format.h>

#include <array>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <map>
#include <pqxx/pqxx>
#include <random>
#include <set>

#include "prelude.hpp"
#include "process_watch.hpp"

namespace {

using Clock = std::chrono::steady_clock;

/// For what comes after servers and processes have been killed, on a busy machine.
constexpr std::chrono::seconds kSoon{180};
constexpr int kAccounts = 50;

/// PAWL_PIPELINE_SECONDS, else short enough for every day.
std::chrono::seconds killing_time() {
  const char* seconds = std::getenv("PAWL_PIPELINE_SECONDS");
  return std::chrono::seconds(seconds != nullptr ? std::atoi(seconds) : 20);
}

std::filesystem::path root() {
  return scripts_folder().parent_path();
}

/// A block of docs/recipes-outbox.md.
std::string documented(const std::string& name) {
  return run_script(root() / "tests/docs/blocks",
                    {(root() / "docs/recipes-outbox.md").string(), name});
}

/// The two pawls of the document, their databases, and the books that the test keeps itself.
class Pipeline {
 public:
  static constexpr std::array<const char*, 2> kSites{"orders", "books"};

  Pipeline() : producer_(std::make_unique<KafkaProducer>(broker_.bootstrap())) {
    broker_.create_topic("orders", 4);
    broker_.create_topic("order-payments", 4);
    ChildOptions options;
    options.environment = libpq();
    const char* path = std::getenv("PATH");
    options.environment["PATH"] =
        std::filesystem::path(PAWL_PROGRAM).parent_path().string() + ":" + (path ? path : "");
    options.working_directory = root();
    options.output = folder_.path() / "set-up.log";
    ChildProcess set_up("bash", {"-exc", documented("end-to-end")}, options);
    const auto status = set_up.wait(kSoon);
    INFO(set_up.output());
    REQUIRE(status.success());
    for (const auto* site : kSites) {
      auto config = documented(fmt::format("{}.toml", site));
      const std::string address = "127.0.0.1:9092";
      const auto at = config.find(address);
      REQUIRE(at != std::string::npos);
      std::ofstream(folder_.path() / site)
          << config.replace(at, address.size(), broker_.bootstrap());
    }
  }

  std::unique_ptr<ChildProcess> start(const std::string& site) {
    ChildOptions options;
    options.environment = libpq();
    options.output = folder_.path() / fmt::format("{}-{}.log", site, ++processes_);
    // A member that died is gone after a second, and the same messages are hit again and again.
    return std::make_unique<ChildProcess>(
        PAWL_PROGRAM,
        std::vector<std::string>{"run", "--config", (folder_.path() / site).string(), "--set",
                                 "kafka.session_timeout=1s", "--set", "failures.max_crashes=100"},
        options);
  }

  /// New orders, numbered on; some are sent twice.
  void produce(int count) {
    for (int i = 0; i < count; ++i) {
      const int order = ++orders_;
      const int amount = order % 89 + 1;
      sum_ += amount;
      const auto account = fmt::format("account-{}", order * 7 % kAccounts);
      Record record;
      record.key = account;
      record.value = fmt::format(R"({{"order": "{}", "account": "{}", "amount": {}}})", order,
                                 account, amount);
      record.headers = {{"event-id", fmt::format("order {} is placed", order)}};
      for (int copies = order % 50 == 0 ? 2 : 1; copies > 0; --copies)
        producer_->send("orders", record);
    }
    producer_->flush(kSoon);
  }
  [[nodiscard]] int orders() const { return orders_; }

  [[nodiscard]] std::int64_t number(const std::string& site, const std::string& sql) const {
    pqxx::connection connection(server_.url(site));
    pqxx::nontransaction tx(connection);
    return tx.exec(sql).one_field().as<std::int64_t>(0);
  }
  [[nodiscard]] std::int64_t entered(const std::string& site) const {
    return number(
        site, site == "orders"s ? "SELECT count(*) FROM orders" : "SELECT count(*) FROM payments");
  }
  void wait_until_entered(const std::string& site, std::int64_t count) const {
    wait_until([&] { return entered(site) >= count; }, kSoon,
               fmt::format("{} to be in {}", count, site));
  }

  /// As when the processes that died have been gone for long.
  void forget_the_dead() const {
    pqxx::connection connection(server_.url("orders"));
    pqxx::nontransaction tx(connection);
    tx.exec("UPDATE pawl.outbox_shards SET lease_until = now() - interval '1 second'");
    tx.exec("DELETE FROM pawl.outbox_relays");
  }

  void restart_postgres() { server_.restart(StopMode::kImmediate); }
  void restart_kafka() {
    broker_.kill();
    broker_.start();
  }

  /// Empty: every order is once in each book, and once in the topic between them, in the order of
  /// its account.
  [[nodiscard]] std::string wrong() {
    std::string problems;
    const auto expect = [&](const char* what, std::int64_t expected, std::int64_t found) {
      if (expected != found)
        problems += fmt::format("{}: expected {}, found {}; ", what, expected, found);
    };
    expect("orders", orders_, entered("orders"));
    expect("sum of the orders", sum_, number("orders", "SELECT sum(amount) FROM orders"));
    expect("messages that wait", 0, number("orders", "SELECT count(*) FROM pawl.outbox"));
    expect("messages set apart", 0, number("orders", "SELECT count(*) FROM pawl.outbox_failed"));
    expect("payments", orders_, entered("books"));
    expect("sum of the payments", sum_, number("books", "SELECT sum(amount) FROM payments"));
    expect("sum of the accounts", sum_, number("books", "SELECT sum(spent) FROM accounts"));
    expect("payments of the accounts", orders_,
           number("books", "SELECT sum(payments) FROM accounts"));
    std::set<std::string> ids;
    std::map<std::string, int> last;
    const auto records = read_topic(broker_.bootstrap(), "order-payments");
    for (const auto& record : records) {
      ids.insert(record.header("pawl-outbox-id"));
      const auto order = std::stoi(record.value->substr(record.value->find(": \"") + 3));
      if (std::exchange(last[*record.key], order) >= order)
        problems += fmt::format("{} of {} is out of order; ", order, *record.key);
    }
    expect("records", orders_, static_cast<std::int64_t>(records.size()));
    expect("ids", orders_, static_cast<std::int64_t>(ids.size()));
    return problems;
  }

 private:
  /// The document's URLs name neither port nor user.
  [[nodiscard]] std::map<std::string, std::optional<std::string>> libpq() const {
    return {{"PGHOST", "127.0.0.1"},        {"PGPORT", std::to_string(server_.port())},
            {"PGUSER", "postgres"},         {"PGDATABASE", std::nullopt},
            {"DATABASE_URL", std::nullopt}, {"PGOPTIONS", std::nullopt}};
  }

  PostgresServer server_;
  KafkaBroker broker_;
  TempDir folder_{"pipeline"};
  std::unique_ptr<KafkaProducer> producer_;
  int orders_ = 0;
  std::int64_t sum_ = 0;
  int processes_ = 0;
};

}  // namespace

TEST_CASE("two pawls with Kafka between them keep balanced books, whatever is killed") {
  Pipeline pipeline;
  struct Place {
    std::string site;
    std::unique_ptr<ChildProcess> process;
  };
  std::vector<Place> places;
  for (const auto* site : {"orders", "orders", "books", "books"})
    places.push_back({site, pipeline.start(site)});

  const auto seed = std::random_device{}();
  CAPTURE(seed);
  std::mt19937 random(seed);
  const auto below = [&](std::size_t bound) {
    return std::uniform_int_distribution<std::size_t>(0, bound - 1)(random);
  };
  pipeline.produce(2000);
  const auto end = Clock::now() + killing_time();
  int kills = 0;
  for (int round = 0; Clock::now() < end || round < 10; ++round) {
    // As far as the other of the two books, a little, or not at all.
    const std::string site = Pipeline::kSites.at(below(2));
    const auto more = static_cast<int>(below(400));
    const auto target = std::min<std::int64_t>(pipeline.entered(site) + more, pipeline.orders());
    pipeline.produce(more);
    pipeline.wait_until_entered(site, target);
    if (round % 20 == 4) {
      pipeline.restart_postgres();
    } else if (round % 20 == 8) {
      pipeline.restart_kafka();
    } else {
      auto& place = places.at(below(places.size()));
      place.process->kill(SIGKILL);
      // What it was killed in, and nothing else ended it.
      const auto status = place.process->wait(60s);
      INFO(place.process->output());
      REQUIRE(status.signal == SIGKILL);
      ++kills;
      place.process = pipeline.start(place.site);
      // Else its lanes wait for ten seconds.
      if (below(4) > 0)
        pipeline.forget_the_dead();
    }
  }
  CAPTURE(kills);
  std::vector<std::unique_ptr<ShowOnFailure>> shown;
  for (const auto& place : places)
    shown.push_back(std::make_unique<ShowOnFailure>(place.site, *place.process));
  pipeline.wait_until_entered("orders", pipeline.orders());
  pipeline.wait_until_entered("books", pipeline.orders());
  wait_until([&] { return pipeline.number("orders", "SELECT count(*) FROM pawl.outbox") == 0; },
             kSoon, "the outbox to be empty");
  for (const auto& place : places)
    stop_cleanly(*place.process);
  CHECK(pipeline.wrong() == "");
  std::printf("%d orders, %d kills\n", pipeline.orders(), kills);
}
