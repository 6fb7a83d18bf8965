#include "dead_letters/store/feed.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "ledger/rows.hpp"
#include "postgres/transaction.hpp"

namespace pawl::ledger {
namespace {

// As the index dead_letters_unpublished has it: no other one has this order, so the primary key is
// not read past all that is published or resolved. A scheduled retry needs no attention yet.
constexpr const char* kWaits =
    "(d.consumer_id, d.dead_letter_id) > ($1::integer, $3::bigint)"
    " AND (d.consumer_id, d.dead_letter_id) <= ($1::integer, 9223372036854775807)"
    " AND d.published_at IS NULL AND d.status IN ('dead', 'parked')"
    " AND d.due_at IS NULL AND d.dead_letter_id <> ALL ($2::bigint[])"
    " ORDER BY d.consumer_id, d.dead_letter_id";

constexpr const char* kWaiting =
    "SELECT (SELECT d.dead_letter_id FROM pawl.dead_letters d WHERE {} LIMIT 1) IS NOT NULL";

// A value's length is known without reading it. `before` is what those in front of a letter hold.
// Each letter by its number (OFFSET 0): a join could read the whole index for each of them.
constexpr const char* kNext = R"sql(
  SELECT d.dead_letter_id, d.topic, d.partition, d.kafka_offset, nullif(d.timestamp_ms, -1),
         d.status, d.reason, d.handler, coalesce(d.sqlstate, ''), d.error, d.attempts, d.payload,
         to_char(d.died_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'),
         d.record_key, d.record_value, d.headers, coalesce(d.statement, '')
    FROM (SELECT w.dead_letter_id,
                 sum(w.bytes) OVER (ORDER BY w.dead_letter_id) - w.bytes AS before
            FROM (SELECT d.dead_letter_id, coalesce(octet_length(d.record_value), 0) AS bytes
                    FROM pawl.dead_letters d
                   WHERE {} LIMIT $4::bigint) w) chosen
   CROSS JOIN LATERAL (SELECT * FROM pawl.dead_letters l
                        WHERE l.dead_letter_id = chosen.dead_letter_id OFFSET 0) d
   WHERE chosen.before < $5::bigint
   ORDER BY d.dead_letter_id
)sql";

// Whoever replays a letter holds its row for as long as the handler runs; the others do not wait
// for that. What is gone (retention) needs no mark.
constexpr const char* kMark = R"sql(
  WITH held AS MATERIALIZED (
         SELECT d.dead_letter_id FROM pawl.dead_letters d
          WHERE d.dead_letter_id = ANY ($1::bigint[]) AND d.published_at IS NULL
            FOR NO KEY UPDATE SKIP LOCKED),
       marked AS (
         UPDATE pawl.dead_letters d SET published_at = clock_timestamp()
          WHERE d.dead_letter_id = ANY (ARRAY(SELECT dead_letter_id FROM held))
         RETURNING d.dead_letter_id)
  SELECT d.dead_letter_id FROM pawl.dead_letters d
   WHERE d.dead_letter_id = ANY ($1::bigint[]) AND d.published_at IS NULL
     AND d.dead_letter_id NOT IN (SELECT dead_letter_id FROM marked)
)sql";

std::string array(const DeadLetterFeed::Ids& ids) {
  return fmt::format("{{{}}}", fmt::join(ids, ","));
}

DeadLetter read(const PGresult* rows, int row) {
  DeadLetter letter;
  letter.id = integer(rows, row, 0);
  letter.partition = {text(rows, row, 1), static_cast<std::int32_t>(integer(rows, row, 2))};
  letter.offset = integer(rows, row, 3);
  letter.timestamp = optional_instant(rows, row, 4);
  letter.status = text(rows, row, 5);
  letter.reason = text(rows, row, 6);
  letter.handler = text(rows, row, 7);
  letter.sqlstate = text(rows, row, 8);
  letter.error = text(rows, row, 9);
  letter.attempts = integer(rows, row, 10);
  letter.payload = text(rows, row, 11);
  letter.died_at = text(rows, row, 12);
  letter.record_key = bytes(rows, row, 13);
  letter.record_value = bytes(rows, row, 14);
  if (!is_null(rows, row, 15))
    take_headers(letter, text(rows, row, 15));
  letter.statement = text(rows, row, 16);
  return letter;
}

}  // namespace

DeadLetterFeed::DeadLetterFeed(const std::string& schema, ConsumerId consumer)
    : consumer_(consumer),
      waiting_{"pawl_feed_waiting", in_schema(fmt::format(fmt::runtime(kWaiting), kWaits), schema)},
      lease_("feed", "pawl.dead_letter_feed", Lease::Durability::kDurable, schema, consumer),
      next_{"pawl_feed_next", in_schema(fmt::format(fmt::runtime(kNext), kWaits), schema)},
      mark_{"pawl_feed_mark", in_schema(kMark, schema)} {}

bool DeadLetterFeed::waiting(postgres::Session& session, const Ids& except) const {
  postgres::Parameters parameters;
  parameters.add_integer(static_cast<std::int64_t>(consumer_));
  parameters.add_text(array(except));
  parameters.add_integer(0);
  return boolean(session.exec(waiting_, parameters).get(), 0, 0);
}

std::vector<DeadLetter> DeadLetterFeed::next(postgres::Session& session, std::int64_t after,
                                             const Ids& except, std::int64_t most,
                                             std::size_t bytes) const {
  postgres::Parameters parameters;
  parameters.add_integer(static_cast<std::int64_t>(consumer_));
  parameters.add_text(array(except));
  parameters.add_integer(after);
  parameters.add_integer(most);
  parameters.add_integer(static_cast<std::int64_t>(bytes));
  const auto found = session.exec(next_, parameters);
  std::vector<DeadLetter> letters;
  for (int row = 0; row < PQntuples(found.get()); ++row)
    letters.push_back(read(found.get(), row));
  return letters;
}

DeadLetterFeed::Ids DeadLetterFeed::mark(postgres::Session& session, const Ids& sent) const {
  postgres::Parameters parameters;
  parameters.add_text(array(sent));
  const auto results = postgres::run_transaction(session, {{&mark_, std::move(parameters)}});
  const auto* rows = results[0].get();
  Ids locked;
  for (int row = 0; row < PQntuples(rows); ++row)
    locked.insert(integer(rows, row, 0));
  return locked;
}

}  // namespace pawl::ledger
