// When a consumer publishes by itself (outbox.relay = "auto").
#include "outbox/task.hpp"
#include "outbox_world.hpp"

namespace {

using pawl::RelayOutbox;
using pawl::engine::RelayBegins;

pawl::HandlerOptions sql(const std::string& text) {
  pawl::HandlerOptions handler;
  handler.sql.emplace_back().text = text;
  return handler;
}

pawl::HandlerOptions code() {
  pawl::HandlerOptions handler;
  handler.name = "payment";
  return handler;
}

}  // namespace

TEST_CASE("whether a consumer publishes follows from its handlers, where nobody says it") {
  const auto publishes = sql("SELECT pawl.publish('t', {key}, {value})");
  const auto other_schema = sql("SELECT \"my pawl\".publish('t', {key}, {value})");
  const auto plain = sql("INSERT INTO published VALUES ({key})");
  const auto no_call = sql("UPDATE o SET published_at = now() WHERE o.published_at IS NULL");
  auto responds = plain;
  responds.response.text = "SELECT pawl.publish('t', {key}, {value})";
  struct Row {
    RelayOutbox relay;
    std::vector<pawl::HandlerOptions> handlers;
    std::optional<RelayBegins> begins;
  };
  const auto row =
      GENERATE_COPY(values<Row>({{RelayOutbox::kAuto, {plain}, RelayBegins::kOnceNeeded},
                                 {RelayOutbox::kAuto, {publishes}, RelayBegins::kAtOnce},
                                 {RelayOutbox::kAuto, {other_schema}, RelayBegins::kAtOnce},
                                 {RelayOutbox::kAuto, {no_call}, RelayBegins::kOnceNeeded},
                                 {RelayOutbox::kAuto, {responds}, RelayBegins::kAtOnce},
                                 {RelayOutbox::kAuto, {plain, code()}, RelayBegins::kOnceNeeded},
                                 {RelayOutbox::kAuto, {code(), publishes}, RelayBegins::kAtOnce},
                                 {RelayOutbox::kOff, {publishes}, std::nullopt},
                                 {RelayOutbox::kOn, {plain}, RelayBegins::kAtOnce},
                                 {RelayOutbox::kOn, {}, RelayBegins::kAtOnce}}));
  pawl::Options options;
  options.outbox.relay = row.relay;
  options.handlers = row.handlers;
  CHECK(pawl::engine::relays_outbox(options) == row.begins);
}

TEST_CASE("a consumer whose C++ publishes brings it into Kafka without being told to") {
  OutboxWorld outbox;
  auto& world = outbox.world();
  const auto topic = world.broker().new_topic("by-code", 1);
  const auto handler = GENERATE(std::string("publishes"), std::string("publishes_by_statements"));
  CAPTURE(handler);
  world.use_handler(fmt::format("name = \"{}\"", handler));
  // As if another process published, so that only what this one publishes makes it begin. A lease
  // of more than 20 s would count as one from before the server's clock went back.
  world.execute(
      "UPDATE pawl.outbox_shards SET owner = 'other', lease_until = now() + interval '19 seconds'");
  const auto process = world.start();
  const ShowOnFailure show("consumer", *process);
  Record record;
  record.key = "k";
  record.value = "to " + topic;
  record.headers = {{"event-id", "one"}};
  record.partition = 0;
  world.produce_record(record);
  wait_until([&] { return world.number("SELECT count(*) FROM pawl.outbox_relays") == 1; }, 60s,
             "it to begin");
  world.execute("UPDATE pawl.outbox_shards SET owner = NULL, lease_until = NULL");
  wait_until([&] { return !read_topic(world.broker().bootstrap(), topic).empty(); }, 60s,
             "the message to be in Kafka");
  outbox.wait_until_published();
  stop_cleanly(*process);
}

TEST_CASE("what a function of the database publishes is brought into Kafka too") {
  OutboxWorld outbox;
  auto& world = outbox.world();
  world.execute(
      fmt::format("CREATE FUNCTION book(id text) RETURNS text LANGUAGE sql AS"
                  " $$ SELECT pawl.publish('{}', 'k', '1', event_id => id) $$",
                  outbox.topic()));
  world.use_handler("sql = [\"SELECT book({header:event-id})\"]");
  world.produce(20);
  const auto process = world.start();
  const ShowOnFailure show("consumer", *process);
  world.wait_until_all_processed();
  outbox.wait_until_published();
  stop_cleanly(*process);
  CHECK(read_topic(world.broker().bootstrap(), outbox.topic()).size() >= 20);
}

TEST_CASE("a consumer in C++ publishes what a process that is gone has left") {
  OutboxWorld outbox;
  outbox.world().use_handler("name = \"publishes\"");
  outbox.publish(100);
  const auto process = outbox.world().start();
  const ShowOnFailure show("consumer", *process);
  outbox.wait_until_published();
  stop_cleanly(*process);
  CHECK(outbox.wrong() == "");
}

TEST_CASE("who has ended keeps nobody from publishing, though it was seen a moment ago") {
  OutboxWorld outbox;
  auto& world = outbox.world();
  world.use_handler("name = \"publishes\"");
  outbox.publish(100);
  // It has a share of the lanes still, but not of the first ones.
  world.execute("UPDATE pawl.outbox SET shard = 0");
  world.execute(
      "INSERT INTO pawl.outbox_relays (owner, seen_at)"
      " VALUES ('ended', now() + interval '1 hour')");
  const auto process = world.start();
  const ShowOnFailure show("consumer", *process);
  outbox.wait_until_published();
  stop_cleanly(*process);
  CHECK(outbox.wrong() == "");
}

TEST_CASE("a drain ends behind what its messages have published") {
  OutboxWorld outbox;
  auto& world = outbox.world();
  world.execute(
      fmt::format("CREATE FUNCTION book(id text) RETURNS text LANGUAGE sql AS"
                  " $$ SELECT pawl.publish('{}', 'k', '1', event_id => id) $$",
                  outbox.topic()));
  const bool by_function = GENERATE(true, false);
  CAPTURE(by_function);
  const auto sql =
      by_function
          ? "SELECT book({header:event-id})"
          : fmt::format("SELECT pawl.publish('{}', 'k', '1', event_id => {{header:event-id}})",
                        outbox.topic());
  world.use_handler(fmt::format("sql = [\"{}\"]", sql));
  world.produce(200);
  world.drain();
  CHECK(outbox.waiting() == 0);
  CHECK(read_topic(world.broker().bootstrap(), outbox.topic()).size() >= 200);
}

TEST_CASE("a drain ends beside somebody who publishes without a pause") {
  OutboxWorld outbox;
  auto& world = outbox.world();
  // There is no moment in which nothing waits.
  world.execute(
      fmt::format("CREATE FUNCTION go_on() RETURNS trigger LANGUAGE plpgsql AS"
                  " $$ BEGIN PERFORM pawl.publish('{}', 'k', '1'); RETURN NULL; END $$",
                  world.broker().new_topic("others", 1)));
  world.execute(
      "CREATE TRIGGER go_on AFTER DELETE ON pawl.outbox"
      " FOR EACH STATEMENT EXECUTE FUNCTION go_on()");
  world.use_handler(fmt::format(
      "sql = [\"SELECT pawl.publish('{}', 'k', '1', event_id => {{header:event-id}})\"]",
      outbox.topic()));
  world.set("consumer.shutdown_timeout=2m");
  world.produce(200);
  const auto process = world.start({.arguments = {"--drain"}});
  const ShowOnFailure show("consumer", *process);
  REQUIRE(process->wait(180s).success());
  CHECK_THAT(process->output(), !ContainsSubstring("messages still wait in the outbox"));
  CHECK(outbox.waiting() > 0);
  CHECK(read_topic(world.broker().bootstrap(), outbox.topic()).size() >= 200);
}

TEST_CASE("a consumer that is to publish nothing leaves the outbox alone") {
  OutboxWorld outbox;
  outbox.publish(10);
  outbox.world().set("outbox.relay=off");
  outbox.world().produce(50);
  outbox.world().drain();
  CHECK(outbox.waiting() == 10);
  CHECK(outbox.world().number("SELECT count(*) FROM pawl.outbox_relays") == 0);
}
