#include "ledger/processes.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "ledger/rows.hpp"
#include "postgres/array_elements.hpp"
#include "postgres/transaction.hpp"

namespace pawl::ledger {
namespace {

constexpr const char* kTell = R"sql(
  INSERT INTO pawl.processes AS p
        (consumer_id, owner, topic, handlers, conditions, keys, policies)
  SELECT $1::integer, $2, t.topic, t.handlers, t.conditions, t.keys, t.policies
    FROM unnest($3::text[], $4::text[], $5::text[], $6::text[], $7::text[])
           AS t (topic, handlers, conditions, keys, policies)
  ON CONFLICT (consumer_id, owner, topic) DO UPDATE SET seen_at = excluded.seen_at
)sql";

// Of processes that were killed.
constexpr const char* kForget = R"sql(
  DELETE FROM pawl.processes
   WHERE consumer_id = $1::integer AND seen_at < clock_timestamp() - interval '1 hour'
)sql";

constexpr const char* kLeave =
    "DELETE FROM pawl.processes WHERE consumer_id = $1::integer AND owner = $2";

// A process tells (engine::Presence) unless all of its workers wait for their handlers.
constexpr const char* kLive = R"sql(
  SELECT topic, owner, handlers, conditions, keys, policies
    FROM pawl.processes
   WHERE consumer_id = $1::integer
     AND seen_at > clock_timestamp() - make_interval(secs => $2::integer)
   ORDER BY topic, owner
)sql";

std::string difference(const std::vector<Fingerprint>& ways) {
  const auto differ = [&ways](std::string Fingerprint::* part) {
    return std::any_of(ways.begin(), ways.end(),
                       [&](const auto& way) { return way.*part != ways.front().*part; });
  };
  std::vector<std::string_view> names;
  if (differ(&Fingerprint::handlers))
    names.emplace_back("handlers");
  if (differ(&Fingerprint::conditions))
    names.emplace_back("conditions");
  if (differ(&Fingerprint::keys))
    names.emplace_back("keys");
  if (differ(&Fingerprint::policies))
    names.emplace_back("policies");
  return fmt::format("{}", fmt::join(names, ", "));
}

}  // namespace

std::string difference(const Fingerprint& one, const Fingerprint& other) {
  return difference(std::vector{one, other});
}

std::vector<DifferingTopic> differing_topics(const std::vector<ProcessTopic>& live) {
  std::vector<DifferingTopic> differing;
  for (std::size_t begin = 0; begin < live.size();) {
    DifferingTopic topic{live[begin].topic, "", {}};
    std::vector<Fingerprint> ways;
    auto end = begin;
    for (; end < live.size() && live[end].topic == topic.topic; ++end) {
      const auto known = std::find(ways.begin(), ways.end(), live[end].fingerprint);
      const auto way = static_cast<std::size_t>(known - ways.begin());
      if (known == ways.end()) {
        ways.push_back(live[end].fingerprint);
        topic.owners.emplace_back();
      }
      topic.owners[way].push_back(live[end].owner);
    }
    if (ways.size() > 1) {
      topic.difference = difference(ways);
      differing.push_back(std::move(topic));
    }
    begin = end;
  }
  return differing;
}

Processes::Processes(const std::string& schema, ConsumerId consumer, std::string owner)
    : consumer_(consumer),
      owner_(std::move(owner)),
      tell_{"pawl_tell_process", in_schema(kTell, schema)},
      forget_{"pawl_forget_processes", in_schema(kForget, schema)},
      leave_{"pawl_leave_processes", in_schema(kLeave, schema)} {}

void Processes::tell(postgres::Session& session,
                     const std::map<std::string, Fingerprint>& fingerprints) const {
  postgres::ArrayElements topics;
  postgres::ArrayElements handlers;
  postgres::ArrayElements conditions;
  postgres::ArrayElements keys;
  postgres::ArrayElements policies;
  for (const auto& [topic, fingerprint] : fingerprints) {
    topics.add_text(topic);
    handlers.add_text(fingerprint.handlers);
    conditions.add_text(fingerprint.conditions);
    keys.add_text(fingerprint.keys);
    policies.add_text(fingerprint.policies);
  }
  postgres::Parameters told;
  told.add_integer(static_cast<std::int64_t>(consumer_));
  told.add_text(owner_);
  for (const auto* column : {&topics, &handlers, &conditions, &keys, &policies})
    told.add_text(column->array());
  postgres::Parameters consumer;
  consumer.add_integer(static_cast<std::int64_t>(consumer_));
  // Two transactions: two processes that forget the same rows must not wait in each other's way.
  postgres::run_relaxed_transaction(session, {{&tell_, std::move(told)}});
  postgres::run_relaxed_transaction(session, {{&forget_, std::move(consumer)}});
}

void Processes::leave(postgres::Session& session) const {
  postgres::Parameters parameters;
  parameters.add_integer(static_cast<std::int64_t>(consumer_));
  parameters.add_text(owner_);
  postgres::run_relaxed_transaction(session, {{&leave_, std::move(parameters)}});
}

std::vector<ProcessTopic> live_processes(postgres::Session& session, const std::string& schema,
                                         ConsumerId consumer) {
  postgres::Parameters parameters;
  parameters.add_integer(static_cast<std::int64_t>(consumer));
  parameters.add_integer(kLiveProcess.count());
  const auto found = session.exec({"", in_schema(kLive, schema)}, parameters);
  const auto* rows = found.get();
  std::vector<ProcessTopic> live;
  for (int row = 0; row < PQntuples(rows); ++row) {
    live.push_back(
        {text(rows, row, 0),
         text(rows, row, 1),
         {text(rows, row, 2), text(rows, row, 3), text(rows, row, 4), text(rows, row, 5)}});
  }
  return live;
}

}  // namespace pawl::ledger
