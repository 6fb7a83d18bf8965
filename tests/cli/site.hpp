#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <pawl/testing/testing.hpp>
#include <string>
#include <vector>

namespace pawl::testing {

/// What a program that has ended left behind.
struct Outcome {
  int code = -1;
  std::string out;
  std::string err;
};

std::string read_file(const std::filesystem::path& path);
void write_file(const std::filesystem::path& path, const std::string& text);

/// Variables added to a program's environment; nullopt removes one.
using Environment = std::map<std::string, std::optional<std::string>>;

/// A database with the README's tables, a topic, a consumer group and a configuration, on the
/// servers that all tests share; and the program to run with them.
class Site {
 public:
  explicit Site(int partitions = 1);
  /// The same on other servers.
  Site(KafkaBroker& kafka, PostgresServer& postgres, int partitions = 1);

  std::string bootstrap;
  std::string url;
  std::string topic;
  std::string group;

  /// Lines for [kafka] and for the end of the configuration. Set before config() is called.
  std::string kafka_lines;
  std::string postgres_lines;
  std::string more;
  /// What the handler does.
  std::string handler = R"toml(sql = [
  "INSERT INTO ledger (event_id, account, amount) VALUES ({header:event-id}, {/account}, {/amount}::bigint)",
  "UPDATE accounts SET balance = balance + {/amount}::bigint, entries = entries + 1 WHERE id = {/account}",
]
)toml";

  /// Writes the configuration and returns its path.
  std::filesystem::path config();

  /// `pawl ARGUMENTS... --config FILE`, to its end.
  Outcome run(std::vector<std::string> arguments, const Environment& environment = {});
  /// The same with the arguments alone. With --json, throws if the output violates its schema.
  Outcome run_bare(const std::vector<std::string>& arguments, const Environment& environment = {});
  /// `pawl run --config FILE ARGUMENTS...` beside the test.
  std::unique_ptr<ChildProcess> start(const std::vector<std::string>& arguments = {});

  /// A payment with an event id of its own.
  void pay(int partition, const std::string& event_id, const std::string& account,
           const std::string& amount);
  /// `count` payments of 1 to account "a", with the event ids PREFIX0, PREFIX1, ...
  void pay_many(int partition, const std::string& prefix, int count);

  /// The first column of the first row, "" when there is none or when it is NULL.
  std::string sql(const std::string& query) const;
  /// The register's offset of the first topic; -2: it has no row.
  long stored(int partition) const;
  /// Waits until the register stands at this offset.
  void wait_for_stored(int partition, long offset) const;
  void wait_for_sql(const std::string& query, const std::string& expected) const;

 protected:
  std::filesystem::path new_file(const std::string& name);

 private:
  TempDir folder_{"cli"};
  int files_ = 0;
};

/// The deadline of every wait in these tests: generous, for a machine that is busy.
inline constexpr std::chrono::seconds kDeadline{120};

}  // namespace pawl::testing
