// A transaction that stays open: rows that are deleted meanwhile cannot be vacuumed, its own rows
// come last under low numbers.
#include <future>

#include "outbox_world.hpp"

namespace {

constexpr int kWriters = 4;
constexpr int kTransactions = 75;
constexpr int kRowsEach = 100;

}  // namespace

TEST_CASE("nothing is left out while a transaction with rows of its own stays open") {
  OutboxWorld outbox;
  auto& world = outbox.world();
  const auto bootstrap = world.broker().bootstrap();
  const auto topic = world.broker().new_topic("meanwhile", 3);
  const auto process = outbox.start();
  const ShowOnFailure show("relay", *process);
  pqxx::connection connection(world.url());
  pqxx::work open(connection);
  open.exec(outbox.publish_sql(2000));

  std::vector<std::future<void>> writers;
  for (int writer = 0; writer < kWriters; ++writer) {
    writers.push_back(std::async(std::launch::async, [&, writer] {
      pqxx::connection own(world.url());
      for (int i = 0; i < kTransactions; ++i) {
        pqxx::work tx(own);
        tx.exec(
            fmt::format("SELECT count(pawl.publish('{}', 'writer {}', n::text))"
                        "  FROM generate_series({}, {}) n",
                        topic, writer, i * kRowsEach + 1, (i + 1) * kRowsEach));
        tx.commit();
      }
    }));
  }
  for (auto& writer : writers)
    writer.get();
  outbox.wait_until_published();
  // Who takes the lanes now reads them from their beginnings, which are dead rows.
  stop_cleanly(*process);
  const auto second = outbox.start();
  const ShowOnFailure show_second("second", *second);
  world.execute(fmt::format("SELECT pawl.publish('{}', 'writer 0', '{}')", topic,
                            kTransactions * kRowsEach + 1));
  outbox.wait_until_published();
  std::map<std::string, int> last;
  for (const auto& record : read_topic(bootstrap, topic)) {
    auto& before = last[record.key.value()];
    REQUIRE(std::stoi(record.value.value()) == before + 1);
    ++before;
  }
  CHECK(last == std::map<std::string, int>{{"writer 0", kTransactions * kRowsEach + 1},
                                           {"writer 1", kTransactions * kRowsEach},
                                           {"writer 2", kTransactions * kRowsEach},
                                           {"writer 3", kTransactions * kRowsEach}});
  CHECK(read_topic(bootstrap, outbox.topic()).empty());

  open.commit();
  outbox.wait_until_published();
  stop_cleanly(*second);
  CHECK(outbox.wrong() == "");
}

TEST_CASE("rows that are gone are not read again, also where statistics say that there are none") {
  OutboxWorld outbox;
  auto& world = outbox.world();
  pqxx::connection other(world.url());
  pqxx::work open(other);
  open.exec("SELECT pg_current_xact_id()");
  outbox.publish(20000);
  world.execute("DELETE FROM pawl.outbox");
  // It keeps them all, and says that the table is empty.
  world.execute("VACUUM ANALYZE pawl.outbox");

  pqxx::connection connection(world.url());
  pqxx::work tx(connection);
  const auto since = tx.exec("SELECT pg_current_snapshot()").one_field().as<std::string>();
  tx.exec(outbox.publish_sql(20));
  tx.exec("SELECT pawl.acquire_outbox_shard('test', 10000, 'none') FROM pawl.outbox_shards");
  tx.exec(
      "SELECT pawl.begin_outbox_batch(l.shard, l.epoch, 1, 'token', ARRAY("
      "  SELECT o.outbox_id FROM pawl.outbox o WHERE o.shard = l.shard)) FROM pawl.outbox_shards "
      "l");
  const auto blocks = [&] {
    return tx.exec("SELECT pg_stat_get_xact_blocks_fetched('pawl.outbox'::regclass)")
        .one_field()
        .as<std::int64_t>();
  };
  const auto expect_few_blocks = [&](const std::string& what, const std::string& rows) {
    INFO(what);
    const auto before = blocks();
    CHECK(tx.exec(fmt::format("SELECT count({}) FROM pawl.outbox_shards l{}", rows, what))
              .one_field()
              .as<int>() > 0);
    CHECK(blocks() - before < 200);
  };
  expect_few_blocks(
      fmt::format(", pawl.next_outbox_rows(l.shard, NULL, '{}', 2000, 1000000) n", since),
      "n.outbox_id");
  expect_few_blocks(", pawl.end_outbox_batch(l.shard, l.epoch, 'token') n", "*");
  CHECK(tx.exec("SELECT count(*) FROM pawl.outbox").one_field().as<int>() == 0);
}
