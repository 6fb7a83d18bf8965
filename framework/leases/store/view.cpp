#include "leases/store/view.hpp"

#include "ledger/rows.hpp"
#include "pawl/errors.hpp"
#include "postgres/transaction.hpp"

namespace pawl::ledger {
namespace {

// A scope is the consumer's where one of its topics puts keys into it.
constexpr const char* kList = R"sql(
  SELECT s.name, l.key, coalesce(l.owner, ''),
         floor(extract(epoch FROM l.lease_until) * 1000)::bigint,
         coalesce(l.lease_until <= clock_timestamp(), false), l.attempt,
         floor(extract(epoch FROM l.begun_at) * 1000)::bigint,
         floor(extract(epoch FROM u.unknown_since) * 1000)::bigint,
         l.done, l.response, coalesce(l.resolved_by, ''), coalesce(t.topic, ''), l.partition,
         l.kafka_offset
    FROM pawl.idempotency_scopes s
    JOIN pawl.leases l USING (scope_id)
    LEFT JOIN pawl.consumer_topics t USING (source_id)
   CROSS JOIN LATERAL (
         SELECT CASE WHEN l.owner IS NOT NULL AND NOT l.done AND l.lease_until <= clock_timestamp()
                     THEN least(l.unknown_since, l.begun_at) ELSE l.unknown_since END) u (unknown_since)
   WHERE CASE WHEN $2 <> '' THEN s.name = $2
              ELSE EXISTS (SELECT FROM pawl.scope_sources o JOIN pawl.consumer_topics c USING (source_id)
                            WHERE o.scope_id = s.scope_id AND c.consumer_id = $1::integer) END
     AND ($3 = '' OR l.key = $3)
     AND (NOT $4::boolean OR u.unknown_since IS NOT NULL)
   ORDER BY s.name, l.key
   LIMIT $5::bigint
)sql";

constexpr const char* kCount = R"sql(
  SELECT count(*) FILTER (WHERE h.in_hand),
         count(*) FILTER (WHERE NOT h.in_hand AND NOT l.done
                            AND (l.unknown_since IS NOT NULL OR l.owner IS NOT NULL)),
         count(*) FILTER (WHERE NOT h.in_hand AND l.done),
         (SELECT count(*) FROM pawl.lease_losses x JOIN pawl.consumer_topics t USING (source_id)
           WHERE t.consumer_id = $1::integer)
    FROM pawl.leases l
   CROSS JOIN LATERAL (
         SELECT coalesce(l.owner IS NOT NULL AND l.lease_until > clock_timestamp(), false)) h (in_hand)
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

constexpr const char* kResolve = R"sql(
  SELECT pawl.resolve_lease(s.scope_id, $2, $3::boolean, $4::bytea)
    FROM pawl.idempotency_scopes s WHERE s.name = $1
)sql";

postgres::Parameters chosen(ConsumerId consumer, const LeaseFilter& filter) {
  postgres::Parameters parameters;
  parameters.add_integer(static_cast<std::int64_t>(consumer));
  parameters.add_text(filter.scope);
  parameters.add_text(filter.key);
  return parameters;
}

}  // namespace

LeaseView::LeaseView(const std::string& schema, ConsumerId consumer)
    : consumer_(consumer),
      list_{"", in_schema(kList, schema)},
      count_{"", in_schema(kCount, schema)},
      losses_{"", in_schema(kLosses, schema)},
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
    lease.expired = boolean(rows, row, 4);
    lease.attempts = static_cast<std::uint32_t>(integer(rows, row, 5));
    lease.begun = instant(rows, row, 6);
    lease.unknown_since = optional_instant(rows, row, 7);
    lease.done = boolean(rows, row, 8);
    lease.response = bytes(rows, row, 9);
    lease.resolved_by = text(rows, row, 10);
    lease.topic = text(rows, row, 11);
    lease.partition = static_cast<std::int32_t>(integer(rows, row, 12));
    lease.offset = integer(rows, row, 13);
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
