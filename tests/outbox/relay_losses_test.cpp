// What the relay does where PostgreSQL or Kafka has lost what it had: commits that did not wait for
// the disk, and offsets that have expired.
#include <algorithm>
#include <csignal>
#include <thread>

#include "outbox_world.hpp"

namespace {

/// Stops PostgreSQL's process that writes the log for those who do not wait for the disk: what they
/// commit is only in memory then, until somebody waits. An immediate stop kills it after 5 s.
/// Stopped in the midst of a write it would hold a lock that every commit needs, so it is stopped
/// while it sleeps.
void stop_wal_writer(OutboxWorld& outbox) {
  const auto pid = static_cast<pid_t>(
      outbox.world().number("SELECT pid FROM pg_stat_activity WHERE backend_type = 'walwriter'"));
  wait_until(
      [&] {
        REQUIRE(::kill(pid, SIGSTOP) == 0);
        wait_until([&] { return is_stopped(pid); }, 60s, "the WAL writer to stop");
        if (outbox.world().value("SELECT coalesce(wait_event, '') FROM pg_stat_activity"
                                 " WHERE backend_type = 'walwriter'") == "WalWriterMain")
          return true;
        REQUIRE(::kill(pid, SIGCONT) == 0);
        return false;
      },
      60s, "the WAL writer to sleep");
}

/// One transaction for each number, that does not wait for the disk and leaves the number in a
/// table of its own as well. Goes on through crashes of the server.
class RelaxedPublisher {
 public:
  explicit RelaxedPublisher(OutboxWorld& outbox)
      : url_(outbox.world().url()), topic_(outbox.topic()) {
    outbox.world().set_for_database("synchronous_commit = off");
    outbox.world().execute("CREATE TABLE history (number integer PRIMARY KEY)");
    thread_ = std::thread([this] { run(); });
  }
  ~RelaxedPublisher() { stop(); }

  void stop() {
    stopping_ = true;
    if (thread_.joinable())
      thread_.join();
  }
  /// Commits that were answered.
  [[nodiscard]] int committed() const { return committed_; }

 private:
  void run() {
    int number = 0;
    while (!stopping_) {
      try {
        pqxx::connection connection(url_);
        const auto sql = fmt::format(
            "WITH stored AS (INSERT INTO history VALUES ($1) RETURNING number)"
            " SELECT pawl.publish('{}', 'key ' || number % 10, number::text) FROM stored",
            topic_);
        while (!stopping_) {
          ++number;
          pqxx::nontransaction tx(connection);
          tx.exec(sql, pqxx::params{number});
          ++committed_;
        }
      } catch (const pqxx::failure&) {  // NOLINT(bugprone-empty-catch): the server will be back
      }
    }
  }

  std::string url_;
  std::string topic_;
  std::atomic<bool> stopping_ = false;
  std::atomic<int> committed_ = 0;
  std::thread thread_;
};

std::int64_t sum_of_published(OutboxWorld& outbox) {
  return outbox.world().number("SELECT sum(published_count) FROM pawl.outbox_shards");
}

std::string group(OutboxWorld& outbox, int lane) {
  return fmt::format("pawl-outbox-{}-{}",
                     outbox.world().value("SELECT database_id FROM pawl.database_identity"), lane);
}

const std::string kStateTopic = "pawl-outbox-state";

}  // namespace

TEST_CASE("a deletion that a crash takes back publishes nothing twice") {
  // Who finds the rows: the process itself, or another one.
  const bool dies = GENERATE(false, true);
  CAPTURE(dies);
  PostgresServer server;
  OutboxWorld outbox(&server);
  outbox.world().set_for_database("synchronous_commit = off");
  // One row, so that no other lane's batch waits for the disk behind the deletion.
  outbox.publish(1);
  const auto process = outbox.start({"--events", "--freeze", "outbox_batch_started:1"});
  const ShowOnFailure show("relay", *process);
  wait_until_stopped(*process, 60s);
  stop_wal_writer(outbox);
  process->kill(SIGCONT);
  wait_until([&] { return outbox.waiting() == 0; }, 60s, "the deletion");
  process->kill(SIGSTOP);
  server.restart(StopMode::kImmediate);
  REQUIRE(outbox.waiting() == 1);

  std::unique_ptr<ChildProcess> other;
  if (dies) {
    process->kill(SIGKILL);
    process->wait(60s);
    outbox.forget_the_dead();
    other = outbox.start();
  } else {
    process->kill(SIGCONT);
  }
  auto& next = dies ? *other : *process;
  const ShowOnFailure show_next("next", next);
  outbox.publish(100);
  outbox.wait_until_published();
  stop_cleanly(next);
  CHECK(outbox.wrong() == "");
}

TEST_CASE(
    "what survives of commits that did not wait for the disk is in Kafka once, and no other") {
  PostgresServer server;
  OutboxWorld outbox(&server);
  RelaxedPublisher publisher(outbox);
  const auto process = outbox.start();
  const ShowOnFailure show("relay", *process);
  std::int64_t lost = 0;
  for (int round = 0; round < 3; ++round) {
    stop_wal_writer(outbox);
    // What is published now has been committed now.
    const auto committed = publisher.committed();
    const auto published = sum_of_published(outbox);
    wait_until(
        [&] {
          return publisher.committed() >= committed + 500 &&
                 sum_of_published(outbox) >= published + 500;
        },
        90s, "messages to be committed and published");
    server.restart(StopMode::kImmediate);
    lost = std::max(lost,
                    publisher.committed() - outbox.world().number("SELECT count(*) FROM history"));
  }
  publisher.stop();
  outbox.wait_until_published();
  stop_cleanly(*process);
  // Else this has tested nothing.
  REQUIRE(lost > 0);

  std::set<int> history;
  pqxx::connection connection(outbox.world().url());
  pqxx::nontransaction tx(connection);
  for (const auto& [number] : tx.query<int>("SELECT number FROM history"))
    history.insert(number);
  std::set<int> seen;
  std::map<std::string, int> last;
  for (const auto& record : read_topic(outbox.world().broker().bootstrap(), outbox.topic())) {
    const auto number = std::stoi(record.value.value());
    INFO(number);
    CHECK(seen.insert(number).second);
    CHECK(std::exchange(last[record.key.value()], number) < number);
  }
  CHECK(seen == history);
}

TEST_CASE("a batch of which Kafka has forgotten that it has it is published again, under its ids") {
  OutboxWorld outbox;
  auto& world = outbox.world();
  outbox.publish(100);
  {
    const auto process = outbox.start({"--kill", "outbox_batch_committed:5"});
    const ShowOnFailure show("killed", *process);
    // Each lane that has keys has published something before.
    outbox.publish_until_killed(*process);
  }
  std::map<int, std::int64_t> numbers;
  int in_kafka = 0;
  for (int lane = 0; lane < 4; ++lane) {
    const auto of_lane = [&](const std::string& what) {
      return world.value(
          fmt::format("SELECT {} FROM pawl.outbox_shards WHERE shard = {}", what, lane));
    };
    numbers[lane] = std::stoll(of_lane("batch_number"));
    const auto committed = world.broker().committed_offsets(group(outbox, lane), kStateTopic);
    if (committed.empty())
      continue;
    if (committed.at(0).metadata == of_lane("batch_token"))
      in_kafka += std::stoi(of_lane("cardinality(batch_ids)"));
    world.broker().delete_group(group(outbox, lane));
  }
  REQUIRE(in_kafka > 0);
  outbox.forget_the_dead();
  outbox.relay_all();

  // Once, and what was in Kafka once more.
  CHECK(outbox.wrong_with_copies() == "");
  const auto records = read_topic(world.broker().bootstrap(), outbox.topic());
  std::set<std::string> ids;
  std::map<std::string, int> last;
  for (const auto& record : records) {
    // Of a copy the reader has seen what comes behind it.
    if (!ids.insert(record.header("pawl-outbox-id")).second)
      continue;
    const auto number = std::stoi(record.value.value());
    CHECK(std::exchange(last[record.key.value()], number) < number);
  }
  CHECK(records.size() == ids.size() + static_cast<std::size_t>(in_kafka));
  // Numbers go on where PostgreSQL left them.
  for (int lane = 0; lane < 4; ++lane) {
    const auto now = world.number(
        fmt::format("SELECT batch_number FROM pawl.outbox_shards WHERE shard = {}", lane));
    // The ten keys of this topic's name may all be in the other lanes.
    if (now == 0)
      continue;
    CHECK(now > numbers[lane]);
    CHECK(world.broker().committed_offsets(group(outbox, lane), kStateTopic).at(0).offset == now);
  }
}

// As pg_restore and logical replication leave them: the transactions are another server's.
TEST_CASE("rows that come from another server keep their place before later ones of their key") {
  OutboxWorld outbox;
  outbox.publish(3000);
  outbox.world().execute("UPDATE pawl.outbox SET xid = '999999999999'");
  outbox.publish(50);
  const auto process = outbox.start();
  const ShowOnFailure show("relay", *process);
  outbox.wait_until_published();
  stop_cleanly(*process);
  CHECK(outbox.wrong() == "");
}
