#include "outbox/store/outbox.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "ledger/consumers.hpp"
#include "ledger/rows.hpp"
#include "pawl/errors.hpp"
#include "postgres/transaction.hpp"

namespace pawl::ledger {
namespace {

constexpr const char* kSetMaxMessage = R"sql(
  UPDATE pawl.outbox_settings SET max_message = $1::integer WHERE max_message <> $1::integer
)sql";

constexpr const char* kKeep = R"sql(
  SELECT array_to_string(k.held, ','), k.spare
    FROM pawl.extend_outbox_shards($1, $2::integer[], $3::bigint[], $4::bigint) k
)sql";

// A process that has not written its row yet differs in nothing. Both parts have the same snapshot,
// so the own row is the previous one.
constexpr const char* kTell = R"sql(
  WITH written AS (
    UPDATE pawl.outbox_relays r SET transactions = $3::boolean, problem = $4,
                                     unwritable_partitions = $5
     WHERE r.owner = $1
       AND (r.transactions, r.problem, r.unwritable_partitions)
           IS DISTINCT FROM ($3::boolean, $4, $5))
  SELECT coalesce(string_agg(r.owner, ', ' ORDER BY r.owner), '')
    FROM pawl.outbox_relays r
   WHERE r.owner <> $1 AND r.transactions <> $3::boolean
     AND r.seen_at > clock_timestamp() - make_interval(secs => $2::bigint / 1000.0)
)sql";

constexpr const char* kLeave = "DELETE FROM pawl.outbox_relays WHERE owner = $1";

constexpr const char* kTake = R"sql(
  SELECT t.shard, t.epoch, t.batch_number, coalesce(t.batch_token, ''), t.batch_rows
    FROM pawl.acquire_outbox_shard($1, $2::bigint, $3) t
)sql";

constexpr const char* kRelease =
    "SELECT pawl.release_outbox_shard($1::integer, $2::bigint, $3::boolean)";

constexpr const char* kProducer = R"sql(
  SELECT l.producer, coalesce(l.released_epoch = l.epoch - 1, false)
    FROM pawl.outbox_shards l
   WHERE l.shard = $1::integer AND l.epoch = $2::bigint AND l.owner = $3
)sql";

constexpr const char* kRenew = "SELECT pawl.renew_outbox_producer($1::integer, $2::bigint)";

constexpr const char* kSnapshot = "SELECT pg_current_snapshot()";

constexpr const char* kNext = R"sql(
  SELECT n.outbox_id, n.topic, n.record_key, n.record_value, n.headers, n.event_id, n.held,
         n.seen, n.more
    FROM pawl.next_outbox_rows($1::integer, $2::bigint, $3::pg_snapshot, $4::integer,
                               $5::bigint) n
)sql";

constexpr const char* kBegin =
    "SELECT pawl.begin_outbox_batch($1::integer, $2::bigint, $3::bigint, $4, $5::bigint[])";

constexpr const char* kEnd = "SELECT pawl.end_outbox_batch($1::integer, $2::bigint, $3)";

constexpr const char* kAbandon = "SELECT pawl.abandon_outbox_batch($1::integer, $2::bigint, $3)";

constexpr const char* kFail =
    "SELECT pawl.fail_outbox_rows($1::integer, $2::bigint, $3::bigint[], $4, $5)";

std::string array(const Outbox::Ids& ids) {
  return fmt::format("{{{}}}", fmt::join(ids, ","));
}

OutboxRow read(const PGresult* rows, int row) {
  OutboxRow result;
  result.id = integer(rows, row, 0);
  result.topic = text(rows, row, 1);
  result.key = bytes(rows, row, 2);
  result.value = bytes(rows, row, 3);
  if (!is_null(rows, row, 4))
    result.headers = text(rows, row, 4);
  result.event_id = text(rows, row, 5);
  result.held = boolean(rows, row, 6);
  return result;
}

std::vector<std::int32_t> numbers(std::string_view list) {
  std::vector<std::int32_t> result;
  while (!list.empty()) {
    const auto end = std::min(list.find(','), list.size());
    result.push_back(std::stoi(std::string(list.substr(0, end))));
    list.remove_prefix(std::min(end + 1, list.size()));
  }
  return result;
}

void add(postgres::Parameters& parameters, const HeldLane& lane) {
  parameters.add_integer(lane.lane);
  parameters.add_integer(lane.epoch);
}

}  // namespace

Outbox::Outbox(const std::string& schema)
    : set_max_message_{"pawl_outbox_max_message", in_schema(kSetMaxMessage, schema)},
      keep_{"pawl_outbox_keep", in_schema(kKeep, schema)},
      tell_{"pawl_outbox_tell", in_schema(kTell, schema)},
      leave_{"pawl_outbox_leave", in_schema(kLeave, schema)},
      take_{"pawl_outbox_take", in_schema(kTake, schema)},
      release_{"pawl_outbox_release", in_schema(kRelease, schema)},
      producer_{"pawl_outbox_producer", in_schema(kProducer, schema)},
      renew_{"pawl_outbox_renew", in_schema(kRenew, schema)},
      snapshot_{"pawl_outbox_snapshot", kSnapshot},
      next_{"pawl_outbox_next", in_schema(kNext, schema)},
      begin_{"pawl_outbox_begin", in_schema(kBegin, schema)},
      end_{"pawl_outbox_end", in_schema(kEnd, schema)},
      abandon_{"pawl_outbox_abandon", in_schema(kAbandon, schema)},
      fail_{"pawl_outbox_fail", in_schema(kFail, schema)} {}

void Outbox::set_max_message(postgres::Session& session, std::size_t bytes) const {
  postgres::Parameters parameters;
  parameters.add_integer(static_cast<std::int64_t>(bytes));
  postgres::run_transaction(session, {{&set_max_message_, std::move(parameters)}});
}

KeptLanes Outbox::keep(postgres::Session& session, const std::string& owner,
                       const std::vector<HeldLane>& lanes, std::chrono::milliseconds lease,
                       const RelayNews& news) const {
  Ids numbers_of;
  Ids epochs;
  for (const auto& lane : lanes) {
    numbers_of.push_back(lane.lane);
    epochs.push_back(lane.epoch);
  }
  postgres::Parameters parameters;
  parameters.add_text(owner);
  parameters.add_text(array(numbers_of));
  parameters.add_text(array(epochs));
  parameters.add_integer(lease.count());
  postgres::Parameters told;
  told.add_text(owner);
  told.add_integer(lease.count());
  told.add_text(news.transactions ? "true" : "false");
  told.add_text_or_null(news.problem);
  told.add_text_or_null(news.left_out);
  const auto answers = postgres::run_relaxed_transaction(
      session, {{&keep_, std::move(parameters)}, {&tell_, std::move(told)}});
  const auto* rows = answers.front().get();
  return {numbers(text(rows, 0, 0)), integer(rows, 0, 1), text(answers.back().get(), 0, 0)};
}

std::optional<LaneGrant> Outbox::take(postgres::Session& session, const std::string& owner,
                                      std::chrono::milliseconds lease,
                                      const std::string& kafka_cluster_id) const {
  postgres::Parameters parameters;
  parameters.add_text(owner);
  parameters.add_integer(lease.count());
  parameters.add_text(kafka_cluster_id);
  const auto answers = postgres::run_transaction(session, {{&take_, std::move(parameters)}});
  const auto* rows = answers.front().get();
  if (PQntuples(rows) == 0)
    return std::nullopt;
  return LaneGrant{static_cast<std::int32_t>(integer(rows, 0, 0)), integer(rows, 0, 1),
                   integer(rows, 0, 2), text(rows, 0, 3), integer(rows, 0, 4)};
}

void Outbox::release(postgres::Session& session, const HeldLane& lane, bool alone) const {
  postgres::Parameters parameters;
  add(parameters, lane);
  parameters.add_text(alone ? "true" : "false");
  postgres::run_relaxed_transaction(session, {{&release_, std::move(parameters)}});
}

void Outbox::leave(postgres::Session& session, const std::string& owner) const {
  postgres::Parameters parameters;
  parameters.add_text(owner);
  postgres::run_relaxed_transaction(session, {{&leave_, std::move(parameters)}});
}

std::optional<LaneProducer> Outbox::producer(postgres::Session& session, const HeldLane& lane,
                                             const std::string& owner) const {
  postgres::Parameters parameters;
  add(parameters, lane);
  parameters.add_text(owner);
  const auto found = session.exec(producer_, parameters);
  if (PQntuples(found.get()) == 0)
    return std::nullopt;
  return LaneProducer{integer(found.get(), 0, 0), boolean(found.get(), 0, 1)};
}

std::int64_t Outbox::renew_producer(postgres::Session& session, const HeldLane& lane) const {
  postgres::Parameters parameters;
  add(parameters, lane);
  const auto answers = postgres::run_transaction(session, {{&renew_, std::move(parameters)}});
  return integer(answers.front().get(), 0, 0);
}

std::string Outbox::snapshot(postgres::Session& session) const {
  return text(session.exec(snapshot_).get(), 0, 0);
}

OutboxPage Outbox::next(postgres::Session& session, std::int32_t lane,
                        std::optional<std::int64_t> after, const std::string& since,
                        std::int64_t most, std::size_t bytes) const {
  postgres::Parameters parameters;
  parameters.add_integer(lane);
  parameters.add_optional_integer(after);
  parameters.add_text(since);
  parameters.add_integer(most);
  parameters.add_integer(static_cast<std::int64_t>(bytes));
  const auto found = session.exec(next_, parameters);
  OutboxPage page;
  page.seen = text(found.get(), 0, 7);
  page.more = boolean(found.get(), PQntuples(found.get()) - 1, 8);
  for (int row = 0; row < PQntuples(found.get()); ++row) {
    if (!is_null(found.get(), row, 0))
      page.rows.push_back(read(found.get(), row));
  }
  return page;
}

void Outbox::begin_batch(postgres::Session& session, const HeldLane& lane, std::int64_t number,
                         const std::string& token, const Ids& ids) const {
  postgres::Parameters parameters;
  add(parameters, lane);
  parameters.add_integer(number);
  parameters.add_text(token);
  parameters.add_text(array(ids));
  postgres::run_transaction(session, {{&begin_, std::move(parameters)}});
}

void Outbox::end_batch(postgres::Session& session, const HeldLane& lane,
                       const std::string& token) const {
  postgres::Parameters parameters;
  add(parameters, lane);
  parameters.add_text(token);
  postgres::run_relaxed_transaction(session, {{&end_, std::move(parameters)}});
}

void Outbox::abandon_batch(postgres::Session& session, const HeldLane& lane,
                           const std::string& token) const {
  postgres::Parameters parameters;
  add(parameters, lane);
  parameters.add_text(token);
  postgres::run_relaxed_transaction(session, {{&abandon_, std::move(parameters)}});
}

void Outbox::fail(postgres::Session& session, const HeldLane& lane, const Ids& ids,
                  const std::string& status, const std::string& reason) const {
  postgres::Parameters parameters;
  add(parameters, lane);
  parameters.add_text(array(ids));
  parameters.add_text(status);
  parameters.add_text(reason);
  postgres::run_transaction(session, {{&fail_, std::move(parameters)}});
}

}  // namespace pawl::ledger
