// More than one outbox in one Kafka: of two databases, and of a database and its copy.
#include <array>
#include <csignal>

#include "outbox_world.hpp"

namespace {

const std::vector<std::string> kSteps{"outbox_shard_acquired", "outbox_batch_started",
                                      "outbox_batch_sent", "outbox_batch_committed",
                                      "outbox_batch_finished"};

/// A database that publishes into a topic which others publish into as well.
class Database {
 public:
  Database(std::string name, std::string topic)
      : name_(std::move(name)), topic_(std::move(topic)) {}

  [[nodiscard]] OutboxWorld& outbox() { return outbox_; }

  /// Of ten keys, numbered on.
  void publish(int count) {
    outbox_.world().execute(
        fmt::format("SELECT count(pawl.publish('{}', 'key ' || n % 10, '{} ' || n))"
                    "  FROM generate_series({}, {}) n",
                    topic_, name_, published_ + 1, published_ + count));
    published_ += count;
  }
  void wait_until_owned() {
    wait_until(
        [&] {
          return outbox_.world().number(
                     "SELECT count(*) FROM pawl.outbox_shards WHERE lease_until > now()") == 4;
        },
        60s, "all lanes to have a living owner");
  }
  /// How often its lanes were taken, by anybody.
  [[nodiscard]] std::int64_t taken() {
    return outbox_.world().number("SELECT sum(epoch) FROM pawl.outbox_shards");
  }

  /// Empty: each of its messages is there once, and those of a key are in their order.
  [[nodiscard]] std::string wrong(const std::vector<StoredRecord>& records) const {
    std::string problems;
    std::map<int, int> seen;
    std::map<std::string, int> last;
    for (const auto& record : records) {
      const auto space = record.value->find(' ');
      if (record.value->substr(0, space) != name_)
        continue;
      const auto number = std::stoi(record.value->substr(space));
      ++seen[number];
      if (std::exchange(last[*record.key], number) >= number)
        problems += fmt::format("{} {} of {} is out of order; ", name_, number, *record.key);
    }
    for (int number = 1; number <= published_; ++number) {
      if (seen[number] != 1)
        problems += fmt::format("{} {} is there {} times; ", name_, number, seen[number]);
    }
    return problems;
  }

 private:
  OutboxWorld outbox_;
  std::string name_;
  std::string topic_;
  int published_ = 0;
};

}  // namespace

TEST_CASE("two databases publish into one topic without knowing of each other") {
  const auto topic = KafkaBroker::shared().new_topic("of-two", 3);
  std::array<Database, 2> databases{Database("one", topic), Database("two", topic)};
  for (std::size_t turn = 0; turn < databases.size(); ++turn) {
    auto& killed = databases.at(turn);
    auto& alive = databases.at(1 - turn);
    const auto survivor = alive.outbox().start();
    const ShowOnFailure show_survivor("survivor", *survivor);
    alive.wait_until_owned();
    const auto taken = alive.taken();
    for (const auto& step : kSteps) {
      const auto process = killed.outbox().start({"--kill", step + ":3"});
      const ShowOnFailure show(step, *process);
      wait_until(
          [&] {
            if (!process->running())
              return true;
            killed.publish(20);
            alive.publish(20);
            return false;
          },
          60s, "the process to kill itself");
      REQUIRE(process->wait(1s).signal == SIGKILL);
      killed.outbox().forget_the_dead();
    }
    alive.outbox().wait_until_published();
    // Nobody has fenced it: neither in its database nor in Kafka, which shows when it publishes.
    CHECK(alive.taken() == taken);
    stop_cleanly(*survivor);
  }
  for (auto& database : databases) {
    const auto process = database.outbox().start();
    const ShowOnFailure show("the last", *process);
    database.publish(20);
    database.outbox().wait_until_published();
    stop_cleanly(*process);
  }
  const auto records = read_topic(KafkaBroker::shared().bootstrap(), topic);
  CHECK(databases[0].wrong(records) == "");
  CHECK(databases[1].wrong(records) == "");
}

TEST_CASE("a copy of a database says that it is one, and neither of the two loses a message") {
  OutboxWorld outbox;
  auto& original = outbox.world();
  const auto run_until_published = [&](const std::string& warning) {
    const auto process = outbox.start();
    const ShowOnFailure show("original", *process);
    outbox.wait_until_published();
    if (!warning.empty())
      process->wait_for_output(warning, 60s);
    stop_cleanly(*process);
  };
  outbox.publish(200);
  run_until_published("");
  // These are in both.
  outbox.publish(50);
  const auto name = original.value("SELECT current_database()");
  const auto copy_url = original.server().url(name + "_copy");
  {
    pqxx::connection connection(original.server().url());
    pqxx::nontransaction tx(connection);
    tx.exec(fmt::format("CREATE DATABASE {0}_copy TEMPLATE {0}", name));
  }
  run_until_published("");
  REQUIRE(outbox.wrong() == "");

  pqxx::connection connection(copy_url);
  pqxx::nontransaction copy(connection);
  const auto of_copy = original.broker().new_topic("of-copy", 1);
  const auto publish_in_copy = [&](int from, int to) {
    copy.exec(
        fmt::format("SELECT count(pawl.publish('{}', 'key ' || n % 10, n::text)) FROM "
                    "generate_series({}, {}) n",
                    of_copy, from, to));
  };
  const auto wait_for_copy = [&] {
    wait_until(
        [&] { return copy.exec("SELECT count(*) FROM pawl.outbox").one_field().as<int>() == 0; },
        90s, "the copy's outbox to be empty");
  };
  const auto relay_of_copy =
      original.start({.extra_config = "[outbox]\nrelay = \"on\"\n", .url = copy_url});
  const ShowOnFailure show_copy("copy", *relay_of_copy);
  relay_of_copy->wait_for_output("the database lost commits, or is a copy", 60s);
  wait_for_copy();
  // What both had is there twice now.
  CHECK(outbox.wrong_with_copies() == "");
  CHECK(read_topic(original.broker().bootstrap(), outbox.topic()).size() == 300);

  // Both at once: each shuts the other one out when it takes a lane, and both get on.
  const auto relay = outbox.start();
  const ShowOnFailure show("original", *relay);
  for (int i = 0; i < 10; ++i) {
    outbox.publish(20);
    publish_in_copy(20 * i + 1, 20 * i + 20);
  }
  outbox.wait_until_published();
  wait_for_copy();
  relay->wait_for_output("the database lost commits, or is a copy", 60s);
  stop_cleanly(*relay);
  stop_cleanly(*relay_of_copy);
  CHECK(outbox.wrong_with_copies() == "");
  std::set<std::string> values;
  std::set<std::string> ids;
  for (const auto& record : read_topic(original.broker().bootstrap(), of_copy)) {
    values.insert(record.value.value());
    ids.insert(record.header("pawl-outbox-id"));
  }
  CHECK(values.size() == 200);
  CHECK(ids.size() == 200);
}
