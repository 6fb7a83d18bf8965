#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <pawl/testing/testing.hpp>

#include "modes.hpp"

namespace pawl::test {

/// What one consumer process of a test does besides consuming; see test_consumer.cpp.
struct ProgramOptions {
  std::vector<std::string> arguments = {};  ///< e.g. {"--drain", "--kill", "handler_returned:17"}
  std::string extra_config = {};            ///< TOML behind the generated config
  std::string url = {};                     ///< empty: the world's own; else e.g. a proxy's
  std::map<std::string, std::optional<std::string>> environment = {};  ///< on top of ours
};

/// A handler of SQL whose server process dies of the message 'poison'; see
/// create_crash_on_poison().
inline constexpr const char* kCrashOnPoisonSql = R"toml(sql = [
  "SELECT crash_on_poison({header:event-id})",
  "INSERT INTO ledger VALUES ({header:event-id}, {/account}, {/amount}::bigint)",
  "UPDATE accounts SET balance = balance + {/amount}::bigint, entries = entries + 1 WHERE id = {/account}",
])toml";

/// For PaymentsWorld::in_register(): all facts of a partition's halt but its offset.
inline constexpr const char* kHaltFacts =
    "concat_ws(' ', halt_code, halt_handler, halt_cause, halt_parameters)";

/// Payments in Kafka, books in PostgreSQL, and what they must be: the setting of most engine tests.
/// Uses the shared broker and server unless told otherwise.
class PaymentsWorld {
 public:
  explicit PaymentsWorld(int partitions = 4, testing::PostgresServer* server = nullptr,
                         testing::KafkaBroker* broker = nullptr);

  [[nodiscard]] const std::string& topic() const { return topic_; }
  [[nodiscard]] const std::string& group() const { return group_; }
  [[nodiscard]] const std::string& url() const { return url_; }
  [[nodiscard]] testing::KafkaBroker& broker() { return broker_; }
  [[nodiscard]] testing::PostgresServer& server() { return server_; }

  /// Kills the broker, and starts it with its data at another port.
  void move_broker(std::uint16_t port);
  /// Raises the topic's number of partitions.
  void add_partitions(int total);

  /// Produces `count` payments with new event ids, about one in a hundred sent twice.
  void produce(int count);
  /// Payments with new event ids, `each` of them to every partition there is.
  void produce_to_each_partition(int each);
  /// Any record, into the payments' topic. It is not in the books.
  void produce_record(testing::Record record);
  /// One payment with this id and amount; repeats are the caller's wish.
  void produce_one(const std::string& event_id, int amount, int partition = -1);
  [[nodiscard]] int produced() const { return produced_; }

  /// The config file's text; `url` empty: the world's own.
  [[nodiscard]] std::string config(const std::string& extra = "",
                                   const std::string& url = "") const;
  /// A whole [[handler]] other than the SQL one; empty restores it.
  void use_handler(std::string toml) { handler_ = std::move(toml); }
  /// `--set` of every process that starts from now on.
  void set(std::string assignment) { settings_.push_back(std::move(assignment)); }
  void use(const Mode& mode);
  void set_kafka_options(std::string toml) { kafka_options_ = std::move(toml); }
  void set_postgres_options(std::string toml) { postgres_options_ = std::move(toml); }

  /// Starts the test consumer as a process of its own.
  std::unique_ptr<testing::ChildProcess> start(const ProgramOptions& options = {});
  /// Runs one to the end of the log; throws when it does not exit with 0.
  void drain(const ProgramOptions& options = {});

  /// Runs a query that gives one value.
  [[nodiscard]] std::string value(const std::string& sql) const;
  void execute(const std::string& sql) const;
  /// For all sessions that begin from now on: "array_nulls = off".
  void set_for_database(const std::string& setting) const;
  /// An SQL function crash_on_poison(id): the server process dies of SIGSEGV for the id 'poison'.
  void create_crash_on_poison() const;
  [[nodiscard]] std::int64_t number(const std::string& sql) const { return std::stoll(value(sql)); }
  /// Of all partitions: how far the stored offsets are from where the counters began, added up.
  /// Equals the messages processed, without holes.
  [[nodiscard]] std::int64_t processed() const;
  void wait_until_processed(std::int64_t messages,
                            std::chrono::milliseconds deadline = std::chrono::seconds(120)) const;
  void wait_until_all_processed(
      std::chrono::milliseconds deadline = std::chrono::seconds(120)) const {
    wait_until_processed(produced_, deadline);
  }
  void wait_for_stored(int partition, std::int64_t offset) const;
  /// running, paused or halted, in the register.
  void wait_for_state(int partition, const std::string& state) const;
  /// Stored offset of one partition of the payments' topic; nullopt without a row.
  [[nodiscard]] std::optional<std::int64_t> stored(int partition) const;
  /// Another column of that row, as text.
  [[nodiscard]] std::string in_register(int partition, const std::string& column) const;

  /// Empty when the books are what the produced messages say; else every difference found.
  [[nodiscard]] std::string imbalance() const;

 private:
  struct Payment {
    int account;
    std::int64_t amount;
  };

  void send(const std::string& event_id, const Payment& payment, int partition);

  testing::PostgresServer& server_;
  testing::KafkaBroker& broker_;
  testing::TempDir folder_;
  std::string url_;
  std::string topic_;
  std::string group_;
  std::string handler_;
  std::string kafka_options_;
  std::string postgres_options_;
  std::vector<std::string> settings_;
  std::unique_ptr<testing::KafkaProducer> producer_;
  std::map<std::string, Payment> payments_;
  int produced_ = 0;
  int next_event_ = 0;
  int next_process_ = 0;
};

}  // namespace pawl::test
