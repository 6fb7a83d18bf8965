#include "ledger/process_conditions.hpp"

#include <algorithm>
#include <utility>

#include "ledger/processes.hpp"
#include "ledger/rows.hpp"
#include "postgres/array_elements.hpp"
#include "postgres/transaction.hpp"

namespace pawl::ledger {
namespace {

constexpr const char* kTell = R"sql(
  INSERT INTO pawl.process_conditions AS p (consumer_id, owner, conditions)
  SELECT $1::integer, $2, coalesce(jsonb_agg(to_jsonb(t)), '[]')
    FROM unnest($3::text[], $4::text[], $5::text[], $6::integer[], $7::bigint[], $8::bigint[],
                $9::text[], $10::boolean[], $11::integer[])
           AS t (kind, subject, topic, partition, since_ms, messages, cause, lasting,
                 blocking_pid)
  ON CONFLICT (consumer_id, owner) DO UPDATE
     SET conditions = excluded.conditions, seen_at = excluded.seen_at
)sql";

// Of processes that were killed.
constexpr const char* kForget = R"sql(
  DELETE FROM pawl.process_conditions
   WHERE consumer_id = $1::integer AND seen_at < clock_timestamp() - interval '1 hour'
)sql";

constexpr const char* kLeave =
    "DELETE FROM pawl.process_conditions WHERE consumer_id = $1::integer AND owner = $2";

constexpr const char* kLive = R"sql(
  SELECT p.owner, c.kind, c.subject, c.topic, c.partition, c.since_ms, c.messages, c.cause,
         coalesce(c.lasting, true), coalesce(c.blocking_pid, 0)
    FROM pawl.process_conditions p
   CROSS JOIN LATERAL jsonb_to_recordset(p.conditions)
           AS c (kind text, subject text, topic text, partition integer, since_ms bigint,
                 messages bigint, cause text, lasting boolean, blocking_pid integer)
   WHERE p.consumer_id = $1::integer
     AND p.seen_at > clock_timestamp() - make_interval(secs => $2::integer)
   ORDER BY c.since_ms, c.subject, p.owner
)sql";

Condition::Kind kind_of(const std::string& name) {
  using Kind = Condition::Kind;
  for (const auto kind : {Kind::kPartitionBlocked, Kind::kKafkaUnreachable}) {
    if (name == to_string(kind))
      return kind;
  }
  return Kind::kRemoteServiceUnreachable;
}

}  // namespace

std::vector<SharedCondition> shared_conditions(const std::vector<ProcessCondition>& conditions) {
  std::vector<SharedCondition> shared;
  for (const auto& [owner, condition] : conditions) {
    const auto same = std::ranges::find_if(shared, [&sought = condition](const auto& one) {
      return one.condition.kind == sought.kind && one.condition.subject == sought.subject;
    });
    if (same == shared.end()) {
      shared.push_back({condition, {owner}});
      continue;
    }
    same->condition.since = std::min(same->condition.since, condition.since);
    same->condition.messages += condition.messages;
    if (same->condition.blocking_pid == 0)
      same->condition.blocking_pid = condition.blocking_pid;
    same->condition.lasting = same->condition.lasting || condition.lasting;
    same->owners.push_back(owner);
  }
  std::ranges::stable_sort(shared, {}, [](const auto& one) { return one.condition.since; });
  return shared;
}

std::set<TopicPartition> blocked_partitions(const std::vector<SharedCondition>& conditions) {
  std::set<TopicPartition> blocked;
  for (const auto& [condition, owners] : conditions) {
    if (condition.kind == Condition::Kind::kPartitionBlocked)
      blocked.insert({condition.topic, condition.partition});
  }
  return blocked;
}

ProcessConditions::ProcessConditions(const std::string& schema, ConsumerId consumer,
                                     std::string owner)
    : consumer_(consumer),
      owner_(std::move(owner)),
      tell_{"pawl_tell_conditions", in_schema(kTell, schema)},
      forget_{"pawl_forget_conditions", in_schema(kForget, schema)},
      leave_{"pawl_leave_conditions", in_schema(kLeave, schema)} {}

void ProcessConditions::tell(postgres::Session& session,
                             const std::vector<Condition>& conditions) const {
  postgres::ArrayElements kinds;
  postgres::ArrayElements whats;
  postgres::ArrayElements topics;
  postgres::ArrayElements partitions;
  postgres::ArrayElements since;
  postgres::ArrayElements messages;
  postgres::ArrayElements causes;
  postgres::ArrayElements lasting;
  postgres::ArrayElements pids;
  for (const auto& condition : conditions) {
    kinds.add_text(to_string(condition.kind));
    whats.add_text(condition.subject);
    topics.add_text(condition.topic);
    partitions.add_integer(condition.partition);
    since.add_integer(condition.since.time_since_epoch().count());
    messages.add_integer(condition.messages);
    causes.add_text(condition.cause);
    lasting.add_text(condition.lasting ? "true" : "false");
    pids.add_integer(condition.blocking_pid);
  }
  postgres::Parameters told;
  told.add_integer(static_cast<std::int64_t>(consumer_));
  told.add_text(owner_);
  for (const auto* column :
       {&kinds, &whats, &topics, &partitions, &since, &messages, &causes, &lasting, &pids})
    told.add_text(column->array());
  postgres::Parameters consumer;
  consumer.add_integer(static_cast<std::int64_t>(consumer_));
  // Two transactions, as of Processes.
  postgres::run_relaxed_transaction(session, {{&tell_, std::move(told)}});
  postgres::run_relaxed_transaction(session, {{&forget_, std::move(consumer)}});
}

void ProcessConditions::leave(postgres::Session& session) const {
  postgres::Parameters parameters;
  parameters.add_integer(static_cast<std::int64_t>(consumer_));
  parameters.add_text(owner_);
  postgres::run_relaxed_transaction(session, {{&leave_, std::move(parameters)}});
}

std::vector<ProcessCondition> live_conditions(postgres::Session& session, const std::string& schema,
                                              ConsumerId consumer) {
  postgres::Parameters parameters;
  parameters.add_integer(static_cast<std::int64_t>(consumer));
  parameters.add_integer(kLiveProcess.count());
  const auto found = session.exec({"", in_schema(kLive, schema)}, parameters);
  const auto* rows = found.get();
  std::vector<ProcessCondition> live;
  for (int row = 0; row < PQntuples(rows); ++row) {
    Condition condition;
    condition.kind = kind_of(text(rows, row, 1));
    condition.subject = text(rows, row, 2);
    condition.topic = text(rows, row, 3);
    condition.partition = static_cast<std::int32_t>(integer(rows, row, 4));
    condition.since = Timestamp(std::chrono::milliseconds(integer(rows, row, 5)));
    condition.messages = integer(rows, row, 6);
    condition.cause = text(rows, row, 7);
    condition.lasting = boolean(rows, row, 8);
    condition.blocking_pid = static_cast<std::int32_t>(integer(rows, row, 9));
    live.push_back({text(rows, row, 0), std::move(condition)});
  }
  return live;
}

}  // namespace pawl::ledger
