#include "payments_world.hpp"

#include <fmt/format.h>

#include <fstream>
#include <pqxx/pqxx>
#include <stdexcept>

namespace pawl::test {
namespace {

constexpr int kAccounts = 100;
/// Behind a broker that has just been restarted on a busy machine too.
constexpr std::chrono::seconds kAcknowledged{180};

constexpr const char* kTables = R"(
  CREATE TABLE ledger (event_id text PRIMARY KEY, account text NOT NULL, amount bigint NOT NULL);
  CREATE TABLE accounts (id text PRIMARY KEY, balance bigint NOT NULL DEFAULT 0,
                         entries bigint NOT NULL DEFAULT 0);
)";

// The ledger's primary key would hide a missing claim, so effects are counted in accounts too.
constexpr const char* kSqlHandler = R"toml(sql = [
  "INSERT INTO ledger (event_id, account, amount) VALUES ({header:event-id}, {/account}, {/amount}::bigint)",
  { text = "UPDATE accounts SET balance = balance + {/amount}::bigint, entries = entries + 1 WHERE id = {/account}", expect_rows = 1 },
])toml";

std::string account_name(int account) {
  return fmt::format("acc-{}", account);
}

}  // namespace

PaymentsWorld::PaymentsWorld(int partitions, testing::PostgresServer* server,
                             testing::KafkaBroker* broker)
    : server_(server != nullptr ? *server : testing::PostgresServer::shared()),
      broker_(broker != nullptr ? *broker : testing::KafkaBroker::shared()),
      folder_("world"),
      url_(server_.create_database("payments")),
      topic_(broker_.new_topic("payments", partitions)),
      group_("group-" + topic_),
      handler_(kSqlHandler),
      producer_(std::make_unique<testing::KafkaProducer>(broker_.bootstrap())) {
  execute(kTables);
  execute(fmt::format("INSERT INTO accounts SELECT 'acc-' || g FROM generate_series(0, {}) g",
                      kAccounts - 1));
}

void PaymentsWorld::use(const Mode& mode) {
  if (!mode.handler.empty())
    handler_ = mode.handler;
  settings_.insert(settings_.end(), mode.settings.begin(), mode.settings.end());
}

void PaymentsWorld::move_broker(std::uint16_t port) {
  broker_.move_to(port);
  producer_ = std::make_unique<testing::KafkaProducer>(broker_.bootstrap());
}

void PaymentsWorld::add_partitions(int total) {
  broker_.add_partitions(topic_, total);
  // A producer looks for new partitions every few minutes only.
  producer_ = std::make_unique<testing::KafkaProducer>(broker_.bootstrap());
}

void PaymentsWorld::send(const std::string& event_id, const Payment& payment, int partition) {
  testing::Record record;
  record.key = account_name(payment.account);
  record.value = fmt::format(R"({{"account":"{}","amount":{}}})", account_name(payment.account),
                             payment.amount);
  record.headers = {{"event-id", event_id}};
  record.partition = partition;
  producer_->send(topic_, record);
  ++produced_;
}

void PaymentsWorld::produce_record(testing::Record record) {
  producer_->send(topic_, record);
  producer_->flush(kAcknowledged);
  ++produced_;
}

void PaymentsWorld::produce(int count) {
  for (int i = 0; i < count; ++i) {
    const int event = next_event_++;
    const Payment payment{event * 7 % kAccounts, event % 97 + 1};
    const auto id = fmt::format("event-{}", event);
    payments_[id] = payment;
    send(id, payment, -1);
    if (event % 100 == 50)
      send(id, payment, -1);
  }
  producer_->flush(kAcknowledged);
}

void PaymentsWorld::produce_to_each_partition(int each) {
  const int partitions = broker_.partition_count(topic_);
  for (int i = 0; i < each * partitions; ++i) {
    const int event = next_event_++;
    const Payment payment{event * 7 % kAccounts, event % 97 + 1};
    const auto id = fmt::format("event-{}", event);
    payments_[id] = payment;
    send(id, payment, i % partitions);
  }
  producer_->flush(kAcknowledged);
}

void PaymentsWorld::produce_one(const std::string& event_id, int amount, int partition) {
  const Payment payment{1, amount};
  payments_[event_id] = payment;
  send(event_id, payment, partition);
  producer_->flush(kAcknowledged);
}

std::string PaymentsWorld::config(const std::string& extra, const std::string& url) const {
  return fmt::format(R"([kafka]
bootstrap_servers = "{}"
group = "{}"
{}

[postgres]
url = "{}"
poll_interval = "100ms"
{}

[idempotency]
key = "{{header:event-id}}"

[[handler]]
topics = ["{}"]
{}

{}
)",
                     broker_.bootstrap(), group_, kafka_options_, url.empty() ? url_ : url,
                     postgres_options_, topic_, handler_, extra);
}

std::unique_ptr<testing::ChildProcess> PaymentsWorld::start(const ProgramOptions& options) {
  const auto name = fmt::format("consumer-{}", next_process_++);
  const auto path = folder_.path() / (name + ".toml");
  std::ofstream(path) << config(options.extra_config, options.url);
  std::vector<std::string> arguments{"--config", path.string()};
  // Each message by itself, so that its steps can be seen; what is set here says otherwise.
  if (handler_ == kSqlHandler)
    arguments.insert(arguments.end(), {"--set", "consumer.pipeline=1"});
  // What fails is tried five times, not for minutes.
  arguments.insert(arguments.end(), {"--set", "failures.retry_for=900ms"});
  for (const auto& setting : settings_)
    arguments.insert(arguments.end(), {"--set", setting});
  arguments.insert(arguments.end(), options.arguments.begin(), options.arguments.end());
  testing::ChildOptions child;
  child.output = folder_.path() / (name + ".log");
  child.environment = options.environment;
  auto process = std::make_unique<testing::ChildProcess>(PAWL_TEST_CONSUMER, arguments, child);
  // Before its main() it would die of a SIGTERM.
  process->wait_for_output("STARTED", std::chrono::seconds(60));
  return process;
}

void PaymentsWorld::drain(const ProgramOptions& options) {
  auto with_drain = options;
  with_drain.arguments.emplace_back("--drain");
  const auto process = start(with_drain);
  const auto status = process->wait(std::chrono::seconds(180));
  if (!status.success()) {
    throw std::runtime_error("draining: " + to_string(status) + "\n" + process->output());
  }
}

std::string PaymentsWorld::value(const std::string& sql) const {
  pqxx::connection connection(url_);
  pqxx::nontransaction tx(connection);
  const auto rows = tx.exec(sql);
  if (rows.empty() || rows[0][0].is_null())
    return "";
  return rows[0][0].as<std::string>();
}

void PaymentsWorld::execute(const std::string& sql) const {
  pqxx::connection connection(url_);
  pqxx::nontransaction tx(connection);
  // What a stopped process holds would be waited for in vain.
  tx.exec("SET lock_timeout = '2min'");
  tx.exec(sql);
}

void PaymentsWorld::set_for_database(const std::string& setting) const {
  execute(fmt::format("ALTER DATABASE {} SET {}", value("SELECT quote_ident(current_database())"),
                      setting));
}

void PaymentsWorld::create_crash_on_poison() const {
  execute(
      "CREATE FUNCTION crash_on_poison(id text) RETURNS void LANGUAGE plpgsql AS $$ BEGIN"
      "  IF id = 'poison' THEN"
      "    EXECUTE 'COPY (SELECT 1) TO PROGRAM ''kill -s SEGV $PPID; sleep 5''';"
      "  END IF; END $$");
}

std::int64_t PaymentsWorld::processed() const {
  return number(
      "SELECT coalesce(sum(last_processed_offset + 1 - base_offset), 0) FROM "
      "pawl.processed_kafka_offsets");
}

void PaymentsWorld::wait_until_processed(std::int64_t messages,
                                         std::chrono::milliseconds deadline) const {
  testing::wait_until(
      [&] {
        try {
          return processed() >= messages;
        } catch (const pqxx::broken_connection&) {
          return false;  // a test that restarts the server waits through it
        }
      },
      deadline, fmt::format("{} messages to be processed", messages));
}

std::optional<std::int64_t> PaymentsWorld::stored(int partition) const {
  const auto text = in_register(partition, "last_processed_offset");
  if (text.empty())
    return std::nullopt;
  return std::stoll(text);
}

std::string PaymentsWorld::in_register(int partition, const std::string& column) const {
  return value(fmt::format(
      "SELECT {} FROM pawl.processed_kafka_offsets WHERE topic = '{}' AND partition = {}", column,
      topic_, partition));
}

void PaymentsWorld::wait_for_stored(int partition, std::int64_t offset) const {
  testing::wait_until([&] { return stored(partition) == offset; }, std::chrono::seconds(120),
                      fmt::format("partition {} to reach offset {}", partition, offset));
}

void PaymentsWorld::wait_for_state(int partition, const std::string& state) const {
  testing::wait_until([&] { return in_register(partition, "state") == state; },
                      std::chrono::seconds(120),
                      fmt::format("partition {} to be {}", partition, state));
}

std::string PaymentsWorld::imbalance() const {
  std::string found;
  const auto expect = [&](const std::string& what, std::int64_t expected, std::int64_t actual) {
    if (expected != actual)
      found += fmt::format("{}: expected {}, found {}\n", what, expected, actual);
  };
  const auto unique = static_cast<std::int64_t>(payments_.size());
  std::int64_t sum = 0;
  std::map<int, std::int64_t> balances;
  for (const auto& [id, payment] : payments_) {
    sum += payment.amount;
    balances[payment.account] += payment.amount;
  }
  expect("messages processed", produced_, processed());
  expect("ledger entries", unique, number("SELECT count(*) FROM ledger"));
  expect("ledger sum", sum, number("SELECT coalesce(sum(amount), 0) FROM ledger"));
  expect("account entries", unique, number("SELECT sum(entries) FROM accounts"));
  expect("keys", unique, number("SELECT count(*) FROM pawl.idempotency_keys"));
  expect("applied + duplicates", produced_,
         number("SELECT sum(applied_count + duplicate_count) FROM pawl.processed_kafka_offsets"));
  for (const auto& [account, balance] : balances) {
    expect(
        account_name(account), balance,
        number(fmt::format("SELECT balance FROM accounts WHERE id = '{}'", account_name(account))));
  }
  return found;
}

}  // namespace pawl::test
