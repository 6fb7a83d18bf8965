#include "dead_letters/store/view.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "dead_letters/store/dead_letters.hpp"
#include "ledger/rows.hpp"
#include "message/traceparent.hpp"

namespace pawl::ledger {
namespace {

constexpr std::int64_t kPage = 200;

constexpr const char* kChosen =
    " d.consumer_id = $1::integer"
    " AND ($2::bigint[] = '{}' OR d.dead_letter_id = ANY ($2::bigint[]))"
    " AND ($3 = '' OR d.topic = $3) AND ($4 = '' OR d.handler = $4) AND ($5 = '' OR d.reason = $5)"
    " AND d.status = ANY (array_replace($6::text[], 'scheduled', 'dead'))"
    " AND (d.status <> 'dead'"
    "      OR CASE WHEN d.due_at IS NULL THEN 'dead' ELSE 'scheduled' END = ANY ($6::text[]))"
    " AND ($7::bigint IS NULL OR d.died_at <= clock_timestamp() - make_interval(secs => "
    "$7::bigint))"
    " AND ($8::bigint IS NULL OR d.died_at >= clock_timestamp() - make_interval(secs => "
    "$8::bigint))"
    " AND ($9::integer IS NULL OR d.partition = $9::integer)"
    " AND ($10 = '' OR starts_with(d.sqlstate, $10))"
    " AND ($11 = '' OR d.idempotency_key = $11)"
    " AND ($12::bytea IS NULL OR d.record_key_hash = $12::bytea)";

constexpr const char* kList = R"sql(
  SELECT d.dead_letter_id, d.topic, d.partition, d.kafka_offset, coalesce(d.topic_id, ''),
         d.leader_epoch, nullif(d.timestamp_ms, -1), d.status, d.reason, d.handler,
         d.idempotency_key, coalesce(d.sqlstate, ''), d.error, coalesce(d.error_detail, ''),
         d.attempts, d.payload, d.value_bytes,
         to_char(d.died_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"'), d.replays,
         to_char(d.resolved_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"'),
         coalesce(d.resolved_by, ''), coalesce(d.resolution, ''),
         d.record_key, d.record_key_hash,
         CASE WHEN $18::boolean THEN d.record_value END,
         CASE WHEN $18::boolean OR d.headers = 'null' THEN d.headers END,
         CASE WHEN $18::boolean THEN d.message_digest END,
         CASE WHEN d.status NOT IN ('dead', 'parked') OR d.due_at IS NULL THEN ''
              WHEN d.due_at = 'infinity' THEN 'turn'
              ELSE to_char(d.due_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"') END,
         greatest(d.retries, 0), coalesce(d.statement, ''),
         (SELECT decode(h.header ->> 'value', 'base64')
            FROM jsonb_array_elements(nullif(d.headers, 'null')) WITH ORDINALITY AS h (header, place)
           WHERE h.header ->> 'name' = 'traceparent' ORDER BY h.place DESC LIMIT 1)
    FROM pawl.dead_letters d
   WHERE {}
     AND ($13::text IS NULL OR {})
   ORDER BY {}
   LIMIT $17::bigint
)sql";

constexpr const char* kAfterPlace =
    "(d.topic, d.partition, d.kafka_offset, d.dead_letter_id)"
    " > ($13::text COLLATE \"C\", $14::integer, $15::bigint, $16::bigint)";
constexpr const char* kByPlace = "d.topic, d.partition, d.kafka_offset, d.dead_letter_id";
// $14 and $15 are named only so that PostgreSQL knows their types.
constexpr const char* kAfterId =
    "($14::integer, $15::bigint) IS NOT NULL AND d.dead_letter_id > $16::bigint";
constexpr const char* kById = "d.dead_letter_id";

constexpr const char* kCounts = R"sql(
  WITH counted AS (
       SELECT d.topic, d.handler, d.reason,
              CASE WHEN d.status = 'dead' AND d.due_at IS NOT NULL THEN 'scheduled' ELSE d.status END
                AS status,
              count(*) AS messages,
              to_char(min(d.died_at) AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"') AS oldest,
              count(*) FILTER (WHERE d.due_at IS NOT NULL AND d.status IN ('dead', 'parked'))
                AS retried,
              coalesce(to_char(min(d.due_at) FILTER (WHERE d.due_at < 'infinity'
                                                       AND d.status IN ('dead', 'parked'))
                               AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"'), '') AS next_due,
              max(d.dead_letter_id) AS newest
         FROM pawl.dead_letters d
        WHERE {}
        GROUP BY 1, 2, 3, 4)
  SELECT c.topic, c.handler, c.reason, c.status, c.messages, c.oldest, c.retried, c.next_due,
         coalesce(n.sqlstate, ''), left(n.error, 1000), coalesce(n.statement, '')
    FROM counted c
    JOIN pawl.dead_letters n ON n.dead_letter_id = c.newest
   ORDER BY c.messages DESC, c.topic, c.handler, c.reason, c.status
)sql";

// From an index that holds nothing else.
constexpr const char* kCountUnresolved = R"sql(
  SELECT count(*) FILTER (WHERE status = 'dead' AND due_at IS NULL),
         count(*) FILTER (WHERE status = 'dead' AND due_at IS NOT NULL),
         count(*) FILTER (WHERE status = 'parked')
    FROM (SELECT status, due_at FROM pawl.dead_letters
           WHERE consumer_id = $1::integer AND status IN ('dead', 'parked') LIMIT $2::bigint) found
)sql";

// A key has a row as soon as its first message is set aside, until its next one arrives: whether
// messages are parked, only they show. The first dead letter is looked for only of the keys that
// are shown.
constexpr const char* kParkedKeys = R"sql(
  SELECT k.topic, f.record_key, k.record_key_hash, k.letters,
         to_char(k.oldest AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"'),
         f.dead_letter_id, f.partition, f.kafka_offset,
         CASE WHEN f.status = 'dead' AND f.due_at IS NOT NULL THEN 'scheduled' ELSE f.status END,
         f.reason, f.error, coalesce(f.statement, '')
    FROM (SELECT p.consumer_id, p.topic, p.record_key_hash, n.letters, n.oldest
            FROM pawl.parked_keys p
           CROSS JOIN LATERAL (SELECT count(*) AS letters, min(d.died_at) AS oldest,
                                      bool_or(d.status = 'parked') AS parked
                                FROM pawl.dead_letters d
                               WHERE d.consumer_id = p.consumer_id AND d.topic = p.topic
                                 AND d.record_key_hash = p.record_key_hash
                                 AND d.status IN ('dead', 'parked')) n
           WHERE p.consumer_id = $1::integer AND ($2 = '' OR p.topic = $2) AND n.parked
           ORDER BY n.letters DESC, p.topic, p.record_key_hash
           LIMIT $3::bigint) k
    JOIN pawl.dead_letters f
      ON f.dead_letter_id = pawl.first_dead_letter(k.consumer_id, k.topic, k.record_key_hash)
   ORDER BY k.letters DESC, k.topic, k.record_key_hash
)sql";

// What is dead or tried again ends the wait of what is parked behind it.
constexpr const char* kLeftParked = R"sql(
  SELECT CASE WHEN EXISTS (SELECT FROM pawl.dead_letters f
                            WHERE f.consumer_id = o.consumer_id AND f.topic = o.topic
                              AND f.record_key_hash = o.record_key_hash
                              AND f.status IN ('dead', 'parked')
                              AND (f.status = 'dead' OR f.due_at IS NOT NULL)) THEN 0
              ELSE (SELECT count(*) FROM pawl.dead_letters d
                     WHERE d.consumer_id = o.consumer_id AND d.topic = o.topic
                       AND d.record_key_hash = o.record_key_hash AND d.status = 'parked') END
    FROM pawl.dead_letters o
   WHERE o.consumer_id = $1::integer AND o.dead_letter_id = $2::bigint
)sql";

// Each record key is looked at once, however many of its letters are asked for.
constexpr const char* kChooseLeftParked = R"sql(
  WITH asked AS MATERIALIZED (
       SELECT d.dead_letter_id, d.consumer_id, d.topic, d.record_key_hash
         FROM pawl.dead_letters d
        WHERE d.consumer_id = $1::integer AND d.dead_letter_id = ANY ($2::bigint[])
          AND d.status = 'parked'),
       left_parked AS MATERIALIZED (
       SELECT k.topic, k.record_key_hash
         FROM (SELECT DISTINCT consumer_id, topic, record_key_hash FROM asked) k
        WHERE NOT EXISTS (SELECT FROM pawl.dead_letters f
                           WHERE f.consumer_id = k.consumer_id AND f.topic = k.topic
                             AND f.record_key_hash = k.record_key_hash
                             AND f.status IN ('dead', 'parked')
                             AND (f.status = 'dead' OR f.due_at IS NOT NULL)))
  SELECT a.dead_letter_id FROM asked a JOIN left_parked USING (topic, record_key_hash)
)sql";

void fill(postgres::Parameters& parameters, ConsumerId consumer, const DeadLetterFilter& filter) {
  parameters.add_integer(static_cast<std::int64_t>(consumer));
  parameters.add_text(fmt::format("{{{}}}", fmt::join(filter.ids, ",")));
  parameters.add_text(filter.topic);
  parameters.add_text(filter.handler);
  parameters.add_text(filter.reason);
  // Words of ours, which need no quotes in an array.
  parameters.add_text(fmt::format("{{{}}}", fmt::join(filter.statuses, ",")));
  for (const auto& age : {filter.older_than, filter.younger_than}) {
    if (age) {
      parameters.add_integer(age->count());
    } else {
      parameters.add_null();
    }
  }
  if (filter.partition) {
    parameters.add_integer(*filter.partition);
  } else {
    parameters.add_null();
  }
  parameters.add_text(filter.sqlstate);
  parameters.add_text(filter.idempotency_key);
  if (filter.record_key_hash) {
    parameters.add_bytes(*filter.record_key_hash);
  } else {
    parameters.add_null();
  }
}

DeadLetter read(const PGresult* rows, int row) {
  DeadLetter letter;
  letter.id = integer(rows, row, 0);
  letter.partition = {text(rows, row, 1), static_cast<std::int32_t>(integer(rows, row, 2))};
  letter.offset = integer(rows, row, 3);
  letter.topic_id = text(rows, row, 4);
  if (const auto epoch = optional_integer(rows, row, 5))
    letter.leader_epoch = static_cast<std::int32_t>(*epoch);
  letter.timestamp = optional_instant(rows, row, 6);
  letter.status = text(rows, row, 7);
  letter.reason = text(rows, row, 8);
  letter.handler = text(rows, row, 9);
  if (!is_null(rows, row, 10))
    letter.idempotency_key = text(rows, row, 10);
  letter.sqlstate = text(rows, row, 11);
  letter.error = text(rows, row, 12);
  letter.error_detail = text(rows, row, 13);
  letter.attempts = integer(rows, row, 14);
  letter.payload = text(rows, row, 15);
  letter.value_bytes = optional_integer(rows, row, 16);
  letter.died_at = text(rows, row, 17);
  letter.replays = integer(rows, row, 18);
  letter.resolved_at = text(rows, row, 19);
  letter.resolved_by = text(rows, row, 20);
  letter.resolution = text(rows, row, 21);
  letter.record_key = bytes(rows, row, 22);
  letter.record_key_hash = bytes(rows, row, 23);
  letter.record_value = bytes(rows, row, 24);
  if (!is_null(rows, row, 25))
    take_headers(letter, text(rows, row, 25));
  letter.message_digest = bytes(rows, row, 26);
  letter.due_at = text(rows, row, 27);
  letter.retries = integer(rows, row, 28);
  letter.statement = text(rows, row, 29);
  if (auto traceparent = bytes(rows, row, 30); traceparent && message::is_traceparent(*traceparent))
    letter.traceparent = *std::move(traceparent);
  return letter;
}

}  // namespace

LetterPlace place_in(const DeadLetter& letter) {
  return {letter.partition, letter.offset, letter.id};
}

std::vector<DeadLetter> DeadLetterView::list(postgres::Session& session,
                                             const DeadLetterFilter& filter, std::int64_t limit,
                                             bool with_payload) const {
  return page(session, filter, limit, std::nullopt, with_payload, LetterOrder::kByPlace);
}

void DeadLetterView::for_each(postgres::Session& session, const DeadLetterFilter& filter,
                              bool with_payload, const std::function<bool(const DeadLetter&)>& use,
                              LetterOrder order) const {
  std::optional<DeadLetter> last;
  while (true) {
    auto letters = page(session, filter, kPage,
                        last ? std::optional{place_in(*last)} : std::nullopt, with_payload, order);
    const bool is_last = std::ssize(letters) < kPage;
    if (!std::ranges::all_of(letters, use) || is_last)
      return;
    last = std::move(letters.back());
  }
}

std::vector<DeadLetter> DeadLetterView::page(postgres::Session& session,
                                             const DeadLetterFilter& filter, std::int64_t limit,
                                             const std::optional<LetterPlace>& after,
                                             bool with_payload, LetterOrder order) const {
  const bool by_id = order == LetterOrder::kById;
  const postgres::Statement ask{
      "", in_schema(fmt::format(fmt::runtime(kList), kChosen, by_id ? kAfterId : kAfterPlace,
                                by_id ? kById : kByPlace),
                    schema_)};
  postgres::Parameters parameters;
  fill(parameters, consumer_, filter);
  if (after) {
    parameters.add_text(after->partition.topic);
    parameters.add_integer(after->partition.partition);
    parameters.add_integer(after->offset);
    parameters.add_integer(after->id);
  } else {
    for (int i = 0; i < 4; ++i)
      parameters.add_null();
  }
  parameters.add_integer(limit);
  parameters.add_text(with_payload ? "true" : "false");
  const auto found = session.exec(ask, parameters);
  std::vector<DeadLetter> letters;
  for (int row = 0; row < PQntuples(found.get()); ++row)
    letters.push_back(read(found.get(), row));
  return letters;
}

UnresolvedLetters DeadLetterView::count_unresolved(postgres::Session& session,
                                                   std::int64_t most) const {
  postgres::Parameters parameters;
  parameters.add_integer(static_cast<std::int64_t>(consumer_));
  parameters.add_integer(most);
  const auto found = session.exec({"", in_schema(kCountUnresolved, schema_)}, parameters);
  UnresolvedLetters letters{integer(found.get(), 0, 0), integer(found.get(), 0, 1),
                            integer(found.get(), 0, 2), false};
  letters.more = letters.dead + letters.retry_later + letters.parked >= most;
  return letters;
}

std::vector<ParkedKey> DeadLetterView::parked_keys(postgres::Session& session,
                                                   const std::string& topic,
                                                   std::int64_t limit) const {
  postgres::Parameters parameters;
  parameters.add_integer(static_cast<std::int64_t>(consumer_));
  parameters.add_text(topic);
  parameters.add_integer(limit);
  const auto found = session.exec({"", in_schema(kParkedKeys, schema_)}, parameters);
  const auto* rows = found.get();
  std::vector<ParkedKey> keys;
  for (int row = 0; row < PQntuples(rows); ++row) {
    auto& key = keys.emplace_back();
    key.topic = text(rows, row, 0);
    key.record_key = bytes(rows, row, 1);
    key.record_key_hash = bytes(rows, row, 2).value_or("");
    key.letters = integer(rows, row, 3);
    key.oldest = text(rows, row, 4);
    key.first.id = integer(rows, row, 5);
    key.first.partition = {key.topic, static_cast<std::int32_t>(integer(rows, row, 6))};
    key.first.offset = integer(rows, row, 7);
    key.first.status = text(rows, row, 8);
    key.first.reason = text(rows, row, 9);
    key.first.error = text(rows, row, 10);
    key.first.statement = text(rows, row, 11);
  }
  return keys;
}

std::int64_t DeadLetterView::left_parked(postgres::Session& session, std::int64_t id) const {
  postgres::Parameters parameters;
  parameters.add_integer(static_cast<std::int64_t>(consumer_));
  parameters.add_integer(id);
  const auto found = session.exec({"", in_schema(kLeftParked, schema_)}, parameters);
  return PQntuples(found.get()) == 0 ? 0 : integer(found.get(), 0, 0);
}

void DeadLetterView::name_left_parked(postgres::Session& session,
                                      std::vector<DeadLetter>& letters) const {
  std::vector<std::int64_t> parked;
  for (const auto& letter : letters) {
    if (letter.status == "parked" && letter.error == kParkedError)
      parked.push_back(letter.id);
  }
  if (parked.empty())
    return;
  postgres::Parameters parameters;
  parameters.add_integer(static_cast<std::int64_t>(consumer_));
  parameters.add_text(fmt::format("{{{}}}", fmt::join(parked, ",")));
  const auto found = session.exec({"", in_schema(kChooseLeftParked, schema_)}, parameters);
  std::set<std::int64_t> left;
  for (int row = 0; row < PQntuples(found.get()); ++row)
    left.insert(integer(found.get(), row, 0));
  for (auto& letter : letters) {
    if (left.contains(letter.id))
      letter.error = "no dead letter of its record key remains, so it waits for a replay";
  }
}

std::vector<DeadLetterCount> DeadLetterView::counts(postgres::Session& session,
                                                    const DeadLetterFilter& filter) const {
  const postgres::Statement ask{"",
                                in_schema(fmt::format(fmt::runtime(kCounts), kChosen), schema_)};
  postgres::Parameters parameters;
  fill(parameters, consumer_, filter);
  const auto found = session.exec(ask, parameters);
  const auto* rows = found.get();
  std::vector<DeadLetterCount> counts;
  for (int row = 0; row < PQntuples(rows); ++row) {
    counts.push_back({text(rows, row, 0), text(rows, row, 1), text(rows, row, 2),
                      text(rows, row, 3), integer(rows, row, 4), text(rows, row, 5),
                      integer(rows, row, 6), text(rows, row, 7), text(rows, row, 8),
                      text(rows, row, 9), text(rows, row, 10)});
  }
  return counts;
}

}  // namespace pawl::ledger
