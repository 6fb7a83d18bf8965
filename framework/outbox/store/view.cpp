#include "outbox/store/view.hpp"

#include <algorithm>

#include "ledger/rows.hpp"
#include "outbox/store/outbox.hpp"
#include "postgres/transaction.hpp"

namespace pawl::ledger {
namespace {

// A lease that lasts longer than two of them is from before the server's clock went back, and over
// (pawl.acquire_outbox_shard).
static_assert(2 * kRelayLease == std::chrono::seconds(20));

// $1: no more than so many of a lane are counted, and one of them to know that there are more.
constexpr const char* kLanes = R"sql(
  SELECT l.shard, coalesce(l.owner, ''),
         coalesce(l.lease_until NOT BETWEEN clock_timestamp()
                  AND clock_timestamp() + interval '20 s', false),
         pawl.outbox_waiting(l.shard, $1::bigint + 1),
         floor(extract(epoch FROM pawl.outbox_oldest(l.shard)) * 1000)::bigint,
         l.published_count, floor(extract(epoch FROM l.published_at) * 1000)::bigint
    FROM pawl.outbox_shards l
   ORDER BY l.shard
)sql";

constexpr const char* kRelays = R"sql(
  SELECT r.owner, r.transactions, coalesce(r.problem, ''), coalesce(r.unwritable_partitions, '')
    FROM pawl.outbox_relays r
   WHERE r.seen_at > clock_timestamp() - make_interval(secs => $1::bigint / 1000.0)
     AND r.seen_at < clock_timestamp() + make_interval(secs => $1::bigint / 1000.0)
   ORDER BY r.owner
)sql";

constexpr const char* kAny = R"sql(
  SELECT bool_or(pawl.outbox_oldest(l.shard) IS NOT NULL) FROM pawl.outbox_shards l
)sql";

constexpr const char* kLeftAlone = R"sql(
  SELECT bool_or(pawl.outbox_oldest(l.shard) IS NOT NULL)
         AND NOT bool_or(l.owner IS NOT NULL
                         AND l.lease_until BETWEEN clock_timestamp()
                             AND clock_timestamp() + interval '20 s')
    FROM pawl.outbox_shards l
)sql";

constexpr const char* kLast = R"sql(
  SELECT coalesce(max(o.outbox_id), 0)
    FROM pawl.outbox_shards l
   CROSS JOIN LATERAL (SELECT w.outbox_id FROM pawl.outbox w
                        WHERE w.shard = l.shard ORDER BY w.outbox_id DESC LIMIT 1) o
)sql";

constexpr const char* kAnyUpTo = R"sql(
  SELECT EXISTS (SELECT FROM pawl.outbox_shards l
                  CROSS JOIN LATERAL (SELECT FROM pawl.outbox w
                                       WHERE w.shard = l.shard AND w.outbox_id <= $1::bigint LIMIT 1) o)
)sql";

constexpr const char* kNow = "SELECT floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint";

constexpr const char* kSetApart = R"sql(
  SELECT f.outbox_id, f.topic, f.record_key, CASE WHEN $4::boolean THEN f.record_value END,
         f.headers, f.event_id, f.status, f.reason,
         floor(extract(epoch FROM f.created_at) * 1000)::bigint,
         floor(extract(epoch FROM f.failed_at) * 1000)::bigint,
         floor(extract(epoch FROM f.resolved_at) * 1000)::bigint,
         coalesce(f.resolved_by, ''), coalesce(f.resolution, '')
    FROM pawl.outbox_failed f
   WHERE ($1::bigint = 0 OR f.outbox_id = $1::bigint)
     AND ($2::boolean OR f.status <> 'discarded')
   ORDER BY f.outbox_id
   LIMIT $3::bigint
)sql";

constexpr const char* kCount =
    "SELECT count(*) FROM pawl.outbox_failed f WHERE f.status <> 'discarded'";

constexpr const char* kRetry = "SELECT pawl.retry_outbox_row($1::bigint, $2)";

}  // namespace

OutboxView::OutboxView(const std::string& schema)
    : lanes_{"pawl_outbox_shards", in_schema(kLanes, schema)},
      relays_{"pawl_outbox_relays", in_schema(kRelays, schema)},
      any_{"pawl_outbox_any", in_schema(kAny, schema)},
      left_alone_{"pawl_outbox_left_alone", in_schema(kLeftAlone, schema)},
      // Planned anew each time: a plan for a table that was nearly empty goes over all of it.
      last_{"", in_schema(kLast, schema)},
      any_up_to_{"", in_schema(kAnyUpTo, schema)},
      now_{"pawl_outbox_now", kNow},
      set_apart_{"pawl_outbox_set_apart", in_schema(kSetApart, schema)},
      count_{"pawl_outbox_count_apart", in_schema(kCount, schema)},
      retry_{"pawl_outbox_retry", in_schema(kRetry, schema)} {}

std::int64_t OutboxStatus::waiting() const {
  std::int64_t messages = 0;
  for (const auto& lane : lanes)
    messages += lane.waiting;
  return messages;
}

bool OutboxStatus::more() const {
  return std::ranges::any_of(lanes, &LaneStatus::more);
}

std::optional<Instant> OutboxStatus::oldest() const {
  std::optional<Instant> oldest;
  for (const auto& lane : lanes) {
    if (lane.oldest && (!oldest || *lane.oldest < *oldest))
      oldest = lane.oldest;
  }
  return oldest;
}

bool OutboxStatus::relayed() const {
  return std::ranges::any_of(
      lanes, [](const auto& lane) { return !lane.owner.empty() && !lane.owner_late; });
}

OutboxStatus OutboxView::look(postgres::Session& session,
                              std::chrono::milliseconds alert_age) const {
  OutboxStatus status;
  status.alert_age = alert_age;
  status.lanes = lanes(session);
  status.relays = relays(session);
  status.now = instant(session.exec(now_).get(), 0, 0);
  status.set_apart = integer(session.exec(count_).get(), 0, 0);
  return status;
}

std::vector<LaneStatus> OutboxView::lanes(postgres::Session& session) const {
  postgres::Parameters parameters;
  parameters.add_integer(kMostCounted);
  const auto found = session.exec(lanes_, parameters);
  std::vector<LaneStatus> lanes;
  for (int row = 0; row < PQntuples(found.get()); ++row) {
    const auto* rows = found.get();
    const auto counted = integer(rows, row, 3);
    lanes.push_back({static_cast<std::int32_t>(integer(rows, row, 0)), text(rows, row, 1),
                     boolean(rows, row, 2), std::min(counted, kMostCounted),
                     optional_instant(rows, row, 4), integer(rows, row, 5),
                     optional_instant(rows, row, 6), counted > kMostCounted});
  }
  return lanes;
}

std::vector<RelayStatus> OutboxView::relays(postgres::Session& session) const {
  postgres::Parameters parameters;
  parameters.add_integer(kRelayLease.count());
  const auto found = session.exec(relays_, parameters);
  std::vector<RelayStatus> relays;
  for (int row = 0; row < PQntuples(found.get()); ++row) {
    RelayStatus relay{.owner = text(found.get(), row, 0)};
    if (!is_null(found.get(), row, 1))
      relay.transactions = boolean(found.get(), row, 1);
    relay.problem = text(found.get(), row, 2);
    relay.left_out = text(found.get(), row, 3);
    relays.push_back(std::move(relay));
  }
  return relays;
}

bool OutboxView::any_waits(postgres::Session& session) const {
  return boolean(session.exec(any_).get(), 0, 0);
}

bool OutboxView::is_left_alone(postgres::Session& session) const {
  return boolean(session.exec(left_alone_).get(), 0, 0);
}

std::int64_t OutboxView::last_waiting(postgres::Session& session) const {
  return integer(session.exec(last_).get(), 0, 0);
}

bool OutboxView::any_waits_up_to(postgres::Session& session, std::int64_t id) const {
  postgres::Parameters parameters;
  parameters.add_integer(id);
  return boolean(session.exec(any_up_to_, parameters).get(), 0, 0);
}

std::vector<SetApart> OutboxView::set_apart(postgres::Session& session, std::int64_t id,
                                            bool discarded, std::int64_t most,
                                            bool with_values) const {
  postgres::Parameters parameters;
  parameters.add_integer(id);
  parameters.add_text(discarded ? "true" : "false");
  parameters.add_integer(most);
  parameters.add_text(with_values ? "true" : "false");
  const auto found = session.exec(set_apart_, parameters);
  std::vector<SetApart> result;
  for (int row = 0; row < PQntuples(found.get()); ++row) {
    const auto* rows = found.get();
    result.push_back({integer(rows, row, 0), text(rows, row, 1), bytes(rows, row, 2),
                      bytes(rows, row, 3), is_null(rows, row, 4) ? "" : text(rows, row, 4),
                      text(rows, row, 5), text(rows, row, 6), text(rows, row, 7),
                      instant(rows, row, 8), instant(rows, row, 9), optional_instant(rows, row, 10),
                      text(rows, row, 11), text(rows, row, 12)});
  }
  return result;
}

std::optional<std::int64_t> OutboxView::retry(postgres::Session& session, std::int64_t id,
                                              const std::string& discard) const {
  postgres::Parameters parameters;
  parameters.add_integer(id);
  parameters.add_text_or_null(discard);
  const auto answers = postgres::run_transaction(session, {{&retry_, std::move(parameters)}});
  return optional_integer(answers.front().get(), 0, 0);
}

}  // namespace pawl::ledger
