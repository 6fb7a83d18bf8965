// Messages that handlers of other kinds publish: with the effects, once.
#include <algorithm>
#include <atomic>

#include "outbox_world.hpp"

namespace {

/// What stands in the topic, by the event id that each record carries as its value.
std::map<std::string, std::set<std::string>> ids_by_event(OutboxWorld& outbox) {
  std::map<std::string, std::set<std::string>> ids;
  for (const auto& record : read_topic(outbox.world().broker().bootstrap(), outbox.topic()))
    ids[record.value.value()].insert(record.header("pawl-outbox-id"));
  return ids;
}

/// What is wrong with it; empty: one record for each booked payment, each under an id of its own.
std::string wrong_with(OutboxWorld& outbox) {
  auto& world = outbox.world();
  std::string problems = world.imbalance();
  std::set<std::string> ids;
  const auto found = ids_by_event(outbox);
  for (const auto& [event, of_event] : found) {
    if (of_event.size() != 1)
      problems += fmt::format("{} is there under {} ids; ", event, of_event.size());
    ids.insert(of_event.begin(), of_event.end());
  }
  const auto records = read_topic(world.broker().bootstrap(), outbox.topic()).size();
  if (records != found.size() || ids.size() != found.size())
    problems +=
        fmt::format("{} records and {} ids for {} events; ", records, ids.size(), found.size());
  if (std::to_string(found.size()) != world.value("SELECT count(*) FROM ledger"))
    problems += fmt::format("{} events in Kafka, other than in the ledger; ", found.size());
  return problems;
}

}  // namespace

TEST_CASE("a batch publishes for each of its messages, and a duplicate publishes nothing") {
  OutboxWorld outbox;
  auto& world = outbox.world();
  world.use_handler(fmt::format(R"toml(batch = true
sql = [
  """INSERT INTO ledger SELECT * FROM unnest({{header:event-id}}::text[], {{/account}}::text[], {{/amount}}::bigint[])""",
  """
  WITH sums AS (SELECT account, sum(amount) AS amount, count(*) AS entries
                  FROM unnest({{/account}}::text[], {{/amount}}::bigint[]) AS p (account, amount) GROUP BY account),
  locked AS MATERIALIZED (SELECT id FROM accounts WHERE id IN (SELECT account FROM sums) ORDER BY id FOR UPDATE)
  UPDATE accounts a SET balance = a.balance + s.amount, entries = a.entries + s.entries
    FROM locked l JOIN sums s ON s.account = l.id WHERE a.id = l.id
  """,
  """SELECT count(pawl.publish('{}', account, event))
       FROM unnest({{/account}}::text[], {{header:event-id}}::text[]) AS p (account, event)""",
]
)toml",
                                outbox.topic()));
  world.produce(600);
  outbox.process_all();
  CHECK(wrong_with(outbox) == "");
}

TEST_CASE("a function of the database publishes as the handler's SQL does, under stable ids") {
  OutboxWorld outbox;
  auto& world = outbox.world();
  world.execute(fmt::format(
      R"sql(
CREATE FUNCTION book(topic text, "partition" integer, "offset" bigint, key bytea, value bytea,
                     headers jsonb, timestamp_ms bigint)
RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    payment jsonb := convert_from(value, 'UTF8')::jsonb;
    event text := headers ->> 'event-id';
BEGIN
    INSERT INTO ledger VALUES (event, payment ->> 'account', (payment ->> 'amount')::bigint);
    UPDATE accounts SET balance = balance + (payment ->> 'amount')::bigint, entries = entries + 1
     WHERE id = payment ->> 'account';
    PERFORM pawl.publish('{}', payment ->> 'account', event);
END
$$)sql",
      outbox.topic()));
  world.use_handler("function = \"book\"\n");
  world.produce(300);
  outbox.process_all();
  CHECK(wrong_with(outbox) == "");
  // Made of the key, and so not of what a random number is: all have the length of a hash.
  for (const auto& [event, ids] : ids_by_event(outbox))
    CHECK(ids.begin()->size() == 64);
}

TEST_CASE("a handler that publishes keeps its transactions on their way together") {
  OutboxWorld outbox;
  auto& world = outbox.world();
  outbox.use_publishing_handler();
  // COMMITs that one connection has sent and that are not answered. Both conditions are asked on
  // the proxy's thread; neither is ever met.
  std::map<std::uint64_t, int> on_the_way;
  std::atomic<int> most = 0;
  PostgresProxy proxy(world.url());
  const auto sent = proxy.stall(Moment::kBefore, [&](const ProxyEvent& event) {
    if (event.commit)
      most = std::max(most.load(), ++on_the_way[event.connection]);
    return false;
  });
  const auto answered = proxy.stall(Moment::kAfter, [&](const ProxyEvent& event) {
    if (event.commit)
      --on_the_way[event.connection];
    return false;
  });
  proxy.set_latency(5ms, 5ms);
  world.produce(400);
  outbox.process_all(proxy.url());
  CHECK(most > 8);
  CHECK(wrong_with(outbox) == "");
}
