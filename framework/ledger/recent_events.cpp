#include "ledger/recent_events.hpp"

#include <algorithm>

#include "ledger/rows.hpp"
#include "postgres/parameters.hpp"

namespace pawl::ledger {
namespace {

/// Numbers are given in order and committed in any: so far below the highest a new one may come.
constexpr std::int64_t kLate = 1000;

constexpr const char* kLastLetter =
    "SELECT coalesce(max(dead_letter_id), 0) FROM pawl.dead_letters";
constexpr const char* kLastSkip = "SELECT coalesce(max(skip_id), 0) FROM pawl.skipped_messages";
constexpr const char* kLastChange = "SELECT coalesce(max(history_id), 0) FROM pawl.offset_history";

// At most so many of a look: the next one brings the others.
constexpr const char* kLetters = R"sql(
  SELECT dead_letter_id, topic, partition, kafka_offset, NULL::bigint,
         CASE WHEN status = 'dead' AND due_at IS NOT NULL THEN 'scheduled' ELSE status END,
         handler, reason, error, NULL,
         to_char(died_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"'),
         sqlstate, greatest(retries, 0),
         CASE WHEN status IN ('dead', 'parked') AND due_at < 'infinity'
              THEN to_char(due_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"') END,
         statement
    FROM pawl.dead_letters
   WHERE consumer_id = $1::integer AND dead_letter_id > $2::bigint
   ORDER BY dead_letter_id LIMIT 20000
)sql";

constexpr const char* kSkipped = R"sql(
  SELECT skip_id, topic, partition, kafka_offset, NULL::bigint, 'skipped', NULL, reason,
         NULL, actor, to_char(skipped_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"'),
         NULL, 0, NULL, NULL
    FROM pawl.skipped_messages
   WHERE consumer_id = $1::integer AND skip_id > $2::bigint
   ORDER BY skip_id LIMIT 20000
)sql";

constexpr const char* kChanges = R"sql(
  SELECT history_id, topic, partition, to_offset, from_offset, action, NULL,
         nullif(concat_ws(': ', halt_code, reason), ''),
         NULL, actor, to_char(happened_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"'),
         NULL, 0, NULL, NULL
    FROM pawl.offset_history
   WHERE consumer_id = $1::integer AND history_id > $2::bigint
   ORDER BY history_id LIMIT 20000
)sql";

}  // namespace

RecentEvents::RecentEvents(const std::string& schema, ConsumerId consumer, Begin begin)
    : consumer_(consumer) {
  const auto add = [&](RecentEvent::Kind kind, const char* last, const char* since) {
    sources_.push_back({kind,
                        {"", in_schema(last, schema)},
                        {"", in_schema(since, schema)},
                        begin == Begin::kWithAll ? 0 : -1,
                        {}});
  };
  add(RecentEvent::Kind::kDeadLetter, kLastLetter, kLetters);
  add(RecentEvent::Kind::kSkipped, kLastSkip, kSkipped);
  add(RecentEvent::Kind::kChange, kLastChange, kChanges);
}

std::vector<RecentEvent> RecentEvents::look(postgres::Session& session) {
  std::vector<RecentEvent> found;
  for (auto& source : sources_)
    look(session, source, found);
  return found;
}

void RecentEvents::look(postgres::Session& session, Source& source,
                        std::vector<RecentEvent>& found) const {
  const bool first = source.highest < 0;
  auto highest = source.highest;
  if (first) {
    const auto last = session.exec(source.last);
    highest = integer(last.get(), 0, 0);
  }
  postgres::Parameters parameters;
  parameters.add_integer(static_cast<std::int64_t>(consumer_));
  parameters.add_integer(std::max<std::int64_t>(0, highest - kLate));
  const auto result = session.exec(source.since, parameters);
  const auto* rows = result.get();
  for (int row = 0; row < PQntuples(rows); ++row) {
    const auto id = integer(rows, row, 0);
    if (!source.seen.insert(id).second || first)
      continue;
    RecentEvent event;
    event.kind = source.kind;
    event.id = id;
    event.partition = {text(rows, row, 1), static_cast<std::int32_t>(integer(rows, row, 2))};
    event.offset = optional_integer(rows, row, 3);
    event.from = optional_integer(rows, row, 4);
    event.what = text(rows, row, 5);
    event.handler = text(rows, row, 6);
    event.reason = text(rows, row, 7);
    event.error = text(rows, row, 8);
    event.actor = text(rows, row, 9);
    event.at = text(rows, row, 10);
    event.sqlstate = text(rows, row, 11);
    event.retries = integer(rows, row, 12);
    event.due_at = text(rows, row, 13);
    event.statement = text(rows, row, 14);
    found.push_back(std::move(event));
  }
  source.highest = std::max(highest, source.seen.empty() ? 0 : *source.seen.rbegin());
  source.seen.erase(source.seen.begin(), source.seen.lower_bound(source.highest - kLate));
}

}  // namespace pawl::ledger
