#include "leases/store/view.hpp"

#include <fmt/format.h>

#include <string_view>

#include "ledger/rows.hpp"
#include "pawl/errors.hpp"
#include "postgres/array_elements.hpp"
#include "postgres/transaction.hpp"

namespace pawl::ledger {
namespace {

// Of a lease l: how it stands, and since when it is unknown whether an attempt did anything. Whose
// lease has ended without a word may have called.
constexpr std::string_view kState = R"sql(
   CROSS JOIN LATERAL (
         SELECT pawl.lease_is_held(l) AS held) h
   CROSS JOIN LATERAL (
         SELECT CASE WHEN l.owner IS NOT NULL AND NOT h.held AND NOT l.done
                     THEN least(l.unknown_since, l.started_at) ELSE l.unknown_since END AS since) u
   CROSS JOIN LATERAL (
         SELECT CASE WHEN h.held THEN 'in flight' WHEN l.done THEN 'done'
                     WHEN u.since IS NOT NULL THEN 'unknown' ELSE 'waits' END AS state) x
)sql";

// A scope is the consumer's where one of its topics puts keys into it. Each scope's leases are read
// in the order of their index up to the limit; what is joined is joined to these, a dead letter by
// the only index that has its order.
constexpr std::string_view kList = R"sql(
  SELECT s.name, l.key, coalesce(l.owner, ''),
         floor(extract(epoch FROM l.lease_until) * 1000)::bigint, l.state, l.attempt,
         floor(extract(epoch FROM l.started_at) * 1000)::bigint,
         floor(extract(epoch FROM l.since) * 1000)::bigint,
         l.done, l.response, coalesce(l.resolved_by, ''), coalesce(t.topic, ''), l.partition,
         l.kafka_offset, d.dead_letter_id
    FROM pawl.idempotency_scopes s
   CROSS JOIN LATERAL (
         SELECT l.*, x.state, u.since
           FROM pawl.leases l
         {}
          WHERE l.scope_id = s.scope_id AND ($3 = '' OR l.key = $3)
            AND (NOT $4::boolean OR x.state = 'unknown')
          ORDER BY l.key
          LIMIT $5::bigint) l
    LEFT JOIN pawl.consumer_topics t ON t.source_id = l.source_id
    LEFT JOIN LATERAL (
         SELECT w.dead_letter_id FROM pawl.dead_letters w
          WHERE w.consumer_id = t.consumer_id AND w.topic = t.topic AND w.partition = l.partition
            AND (w.kafka_offset, w.dead_letter_id) >= (l.kafka_offset, 0)
            AND w.kafka_offset <= l.kafka_offset AND w.status IN ('dead', 'parked')
          ORDER BY w.kafka_offset DESC, w.dead_letter_id DESC
          LIMIT 1) d ON true
   WHERE CASE WHEN $2 <> '' THEN s.name = $2
              ELSE EXISTS (SELECT FROM pawl.scope_sources o JOIN pawl.consumer_topics c USING (source_id)
                            WHERE o.scope_id = s.scope_id AND c.consumer_id = $1::integer) END
   ORDER BY s.name, l.key
   LIMIT $5::bigint
)sql";

constexpr std::string_view kCount = R"sql(
  SELECT count(*) FILTER (WHERE x.state = 'in flight'), count(*) FILTER (WHERE x.state = 'done'),
         count(*) FILTER (WHERE x.state = 'unknown'),
         (SELECT count(*) FROM pawl.lease_losses z JOIN pawl.consumer_topics t USING (source_id)
           WHERE t.consumer_id = $1::integer)
    FROM pawl.leases l
  {}
   WHERE EXISTS (SELECT FROM pawl.scope_sources o JOIN pawl.consumer_topics c USING (source_id)
                  WHERE o.scope_id = l.scope_id AND c.consumer_id = $1::integer)
)sql";

constexpr const char* kLosses = R"sql(
  SELECT x.loss_id, coalesce(s.name, ''), x.key, x.owner, x.attempt, x.returned,
         floor(extract(epoch FROM x.lost_at) * 1000)::bigint, coalesce(t.topic, ''), x.partition,
         x.kafka_offset
    FROM pawl.lease_losses x
    LEFT JOIN pawl.idempotency_scopes s USING (scope_id)
    LEFT JOIN pawl.consumer_topics t USING (source_id)
   WHERE CASE WHEN $2 <> '' THEN s.name = $2 ELSE t.consumer_id = $1::integer END
     AND ($3 = '' OR x.key = $3)
   ORDER BY x.loss_id DESC
   LIMIT $4::bigint
)sql";

constexpr const char* kAcknowledge = R"sql(
  DELETE FROM pawl.lease_losses x USING pawl.consumer_topics t
   WHERE t.source_id = x.source_id AND t.consumer_id = $1::integer
     AND ($2::boolean OR x.loss_id = ANY ($3::bigint[]))
  RETURNING x.loss_id
)sql";

constexpr const char* kResolve = R"sql(
  SELECT pawl.resolve_lease(s.scope_id, $2, $3::boolean, $4::bytea)
    FROM pawl.idempotency_scopes s WHERE s.name = $1
)sql";

std::string with_state(std::string_view text) {
  return fmt::format(fmt::runtime(text), kState);
}

LeaseState parse_lease_state(const std::string& state) {
  if (state == "in flight")
    return LeaseState::kInHand;
  if (state == "done")
    return LeaseState::kDone;
  return state == "unknown" ? LeaseState::kUnknown : LeaseState::kWaits;
}

postgres::Parameters chosen(ConsumerId consumer, const LeaseFilter& filter) {
  postgres::Parameters parameters;
  parameters.add_integer(static_cast<std::int64_t>(consumer));
  parameters.add_text(filter.scope);
  parameters.add_text(filter.key);
  return parameters;
}

}  // namespace

const char* to_string(LeaseState state) {
  switch (state) {
    case LeaseState::kInHand:
      return "in-flight";
    case LeaseState::kDone:
      return "done";
    case LeaseState::kUnknown:
      return "unknown";
    case LeaseState::kWaits:
      break;
  }
  return "waiting";
}

LeaseView::LeaseView(const std::string& schema, ConsumerId consumer)
    : consumer_(consumer),
      list_{"", in_schema(with_state(kList), schema)},
      count_{"", in_schema(with_state(kCount), schema)},
      losses_{"", in_schema(kLosses, schema)},
      acknowledge_{"", in_schema(kAcknowledge, schema)},
      resolve_{"", in_schema(kResolve, schema)} {}

std::vector<LeaseRow> LeaseView::list(postgres::Session& session, const LeaseFilter& filter,
                                      std::int64_t limit) const {
  auto parameters = chosen(consumer_, filter);
  parameters.add_text(filter.unknown ? "true" : "false");
  parameters.add_integer(limit);
  const auto found = session.exec(list_, parameters);
  const auto* rows = found.get();
  std::vector<LeaseRow> leases;
  for (int row = 0; row < PQntuples(rows); ++row) {
    LeaseRow lease;
    lease.scope = text(rows, row, 0);
    lease.key = text(rows, row, 1);
    lease.owner = text(rows, row, 2);
    lease.until = optional_instant(rows, row, 3);
    lease.state = parse_lease_state(text(rows, row, 4));
    lease.attempts = static_cast<std::uint32_t>(integer(rows, row, 5));
    lease.begun = instant(rows, row, 6);
    lease.unknown_since = optional_instant(rows, row, 7);
    lease.done = boolean(rows, row, 8);
    lease.response = bytes(rows, row, 9);
    lease.resolved_by = text(rows, row, 10);
    lease.topic = text(rows, row, 11);
    lease.partition = static_cast<std::int32_t>(integer(rows, row, 12));
    lease.offset = integer(rows, row, 13);
    lease.dead_letter = optional_integer(rows, row, 14);
    leases.push_back(std::move(lease));
  }
  return leases;
}

LeaseCounts LeaseView::count(postgres::Session& session) const {
  postgres::Parameters parameters;
  parameters.add_integer(static_cast<std::int64_t>(consumer_));
  const auto found = session.exec(count_, parameters);
  const auto* rows = found.get();
  return {integer(rows, 0, 0), integer(rows, 0, 1), integer(rows, 0, 2), integer(rows, 0, 3)};
}

std::vector<LeaseLoss> LeaseView::losses(postgres::Session& session, const LeaseFilter& filter,
                                         std::int64_t limit) const {
  auto parameters = chosen(consumer_, filter);
  parameters.add_integer(limit);
  const auto found = session.exec(losses_, parameters);
  const auto* rows = found.get();
  std::vector<LeaseLoss> losses;
  for (int row = 0; row < PQntuples(rows); ++row) {
    losses.push_back({integer(rows, row, 0), text(rows, row, 1), text(rows, row, 2),
                      text(rows, row, 3), static_cast<std::uint32_t>(integer(rows, row, 4)),
                      boolean(rows, row, 5), instant(rows, row, 6), text(rows, row, 7),
                      static_cast<std::int32_t>(integer(rows, row, 8)), integer(rows, row, 9)});
  }
  return losses;
}

std::int64_t LeaseView::acknowledge(postgres::Session& session,
                                    const std::vector<std::int64_t>& ids, bool all) const {
  postgres::ArrayElements elements;
  for (const auto id : ids)
    elements.add_integer(id);
  postgres::Parameters parameters;
  parameters.add_integer(static_cast<std::int64_t>(consumer_));
  parameters.add_text(all ? "true" : "false");
  parameters.add_text(elements.array());
  const auto found = session.exec(acknowledge_, parameters);
  return PQntuples(found.get());
}

void LeaseView::resolve(postgres::Session& session, const LeaseRow& lease, bool done,
                        const Response& response) const {
  postgres::Parameters parameters;
  parameters.add_text(lease.scope);
  parameters.add_text(lease.key);
  parameters.add_text(done ? "true" : "false");
  parameters.add_optional_bytes(response ? std::optional<std::string_view>(*response)
                                         : std::nullopt);
  try {
    (void)postgres::run_transaction(session, {{&resolve_, std::move(parameters)}});
  } catch (const postgres::Error& error) {
    if (error.sqlstate() == "PW016")
      throw FatalError(error.what());
    throw;
  }
}

}  // namespace pawl::ledger
