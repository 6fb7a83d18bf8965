#include "site.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <pqxx/pqxx>
#include <sstream>

#include "json_schema.hpp"

namespace pawl::testing {

std::string read_file(const std::filesystem::path& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

void write_file(const std::filesystem::path& path, const std::string& text) {
  std::ofstream(path) << text;
}

Site::Site(int partitions) : Site(KafkaBroker::shared(), PostgresServer::shared(), partitions) {}

Site::Site(KafkaBroker& kafka, PostgresServer& postgres, int partitions)
    : bootstrap(kafka.bootstrap()),
      url(postgres.create_database("cli")),
      topic(kafka.new_topic("payments", partitions)),
      group("group-of-" + topic) {
  pqxx::connection connection(url);
  pqxx::work work(connection);
  work.exec(
      "CREATE TABLE ledger (event_id text PRIMARY KEY, account text NOT NULL, amount bigint NOT "
      "NULL);"
      "CREATE TABLE accounts (id text PRIMARY KEY, balance bigint NOT NULL DEFAULT 0,"
      "                       entries bigint NOT NULL DEFAULT 0);"
      "INSERT INTO accounts (id) VALUES ('a'), ('b')");
  work.commit();
}

std::filesystem::path Site::new_file(const std::string& name) {
  return folder_.path() / (std::to_string(files_++) + "-" + name);
}

std::filesystem::path Site::config() {
  const auto path = new_file("pawl.toml");
  std::ofstream(path) << "[kafka]\nbootstrap_servers = \"" << bootstrap << "\"\ngroup = \"" << group
                      << "\"\n"
                      << kafka_lines << "\n[postgres]\nurl = \"" << url
                      << "\"\npoll_interval = \"100ms\"\n"
                      << postgres_lines << "\n[idempotency]\nkey = \"{header:event-id}\"\n"
                      << "\n[[handler]]\ntopics = [\"" << topic << "\"]\n"
                      << handler << more;
  return path;
}

namespace {

/// What fails is tried five times, not for minutes; what a test says itself counts.
void hurry(std::vector<std::string>& arguments) {
  for (const auto& argument : arguments) {
    if (argument.starts_with("failures.retry_for"))
      return;
  }
  arguments.insert(arguments.end(), {"--set", "failures.retry_for=900ms"});
}

}  // namespace

Outcome Site::run(std::vector<std::string> arguments, const Environment& environment) {
  if (arguments.front() == "run")
    hurry(arguments);
  arguments.emplace_back("--config");
  arguments.push_back(config().string());
  return run_bare(arguments, environment);
}

Outcome Site::run_bare(const std::vector<std::string>& arguments, const Environment& environment) {
  const auto out = new_file("out");
  const auto err = new_file("err");
  ChildProcess child(
      PAWL_PROGRAM, arguments,
      {.environment = environment, .output = out, .errors = err, .working_directory = {}});
  const auto status = child.wait(kDeadline);
  Outcome outcome{status.code.value_or(-1), read_file(out), read_file(err)};
  // Not what a killed program left.
  if (status.code && std::find(arguments.begin(), arguments.end(), "--json") != arguments.end())
    require_schema(arguments, outcome.out);
  return outcome;
}

std::unique_ptr<ChildProcess> Site::start(const std::vector<std::string>& arguments) {
  std::vector<std::string> all{"run", "--config", config().string()};
  all.insert(all.end(), arguments.begin(), arguments.end());
  hurry(all);
  return std::make_unique<ChildProcess>(
      PAWL_PROGRAM, all,
      ChildOptions{
          .environment = {}, .output = new_file("log"), .errors = {}, .working_directory = {}});
}

void Site::pay(int partition, const std::string& event_id, const std::string& account,
               const std::string& amount) {
  KafkaProducer producer(bootstrap);
  producer.send(topic, {.key = account,
                        .value = R"({"account": ")" + account + R"(", "amount": )" + amount + "}",
                        .headers = {{"event-id", event_id}},
                        .partition = partition});
  producer.flush();
}

void Site::pay_many(int partition, const std::string& prefix, int count) {
  KafkaProducer producer(bootstrap);
  for (int i = 0; i < count; ++i) {
    producer.send(topic, {.key = "a",
                          .value = R"({"account": "a", "amount": 1})",
                          .headers = {{"event-id", prefix + std::to_string(i)}},
                          .partition = partition});
  }
  producer.flush();
}

std::string Site::sql(const std::string& query) const {
  pqxx::connection connection(url);
  pqxx::work work(connection);
  const auto rows = work.exec(query);
  work.commit();
  if (rows.empty() || rows[0][0].is_null())
    return "";
  return rows[0][0].c_str();
}

long Site::stored(int partition) const {
  const auto text = sql(
      fmt::format("SELECT last_processed_offset FROM pawl.processed_kafka_offsets WHERE topic = "
                  "'{}' AND partition = {}",
                  topic, partition));
  return text.empty() ? -2 : std::stol(text);
}

void Site::wait_for_stored(int partition, long offset) const {
  wait_until(
      [&] { return stored(partition) == offset; }, kDeadline,
      "stored offset " + std::to_string(offset) + " of partition " + std::to_string(partition));
}

void Site::wait_for_sql(const std::string& query, const std::string& expected) const {
  wait_until([&] { return sql(query) == expected; }, kDeadline, query + " to be " + expected);
}

}  // namespace pawl::testing
