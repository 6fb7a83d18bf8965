#include "dead_letters/store/due_letters.hpp"

#include "dead_letters/store/dead_letters.hpp"
#include "ledger/partition_parameters.hpp"
#include "ledger/rows.hpp"
#include "postgres/transaction.hpp"

namespace pawl::ledger {
namespace {

// Partition by partition, by the index dead_letters_due: letters of one that is halted are not
// read. Whose sessions a role may not see in full have no backend_start for it. Through a pooler it
// is unknown whether the process of a try has ended: the try counts, so that its number and that of
// the next one differ if both go on.
constexpr const char* kDue = R"sql(
  SELECT d.dead_letter_id, d.topic, d.partition, d.kafka_offset, d.handler, d.retries,
         d.record_key_hash,
         CASE WHEN d.tried_alone IS NULL THEN false
              ELSE NOT EXISTS (
                   SELECT FROM pg_stat_activity a
                    WHERE a.pid = d.tried_pid
                      AND coalesce(a.backend_start = d.tried_backend_start, true)) END,
         coalesce(NOT d.tried_alone AND d.tried_pid IS NOT NULL, false)
    FROM pawl.processed_kafka_offsets r
   CROSS JOIN LATERAL (
         SELECT d.dead_letter_id, d.topic, d.partition, d.kafka_offset, d.handler, d.retries,
                d.record_key_hash, d.due_at, d.tried_alone, d.tried_pid, d.tried_backend_start
           FROM pawl.dead_letters d
          WHERE d.consumer_id = r.consumer_id AND d.topic = r.topic AND d.partition = r.partition
            AND d.due_at <= statement_timestamp() AND d.status IN ('dead', 'parked')
          ORDER BY d.due_at LIMIT $2::bigint) d
   WHERE r.consumer_id = $1::integer AND r.state = 'running'
   ORDER BY d.due_at, d.dead_letter_id
)sql";

// In the order that only this index has, so that no other one is read in vain.
constexpr const char* kAny = R"sql(
  SELECT (SELECT d.dead_letter_id FROM pawl.dead_letters d
           WHERE d.consumer_id >= $1::integer AND d.consumer_id <= $1::integer
             AND d.due_at IS NOT NULL AND d.status IN ('dead', 'parked')
           ORDER BY d.consumer_id, d.topic, d.partition, d.due_at LIMIT 1) IS NOT NULL
)sql";

constexpr const char* kTake =
    "SELECT pawl.claim_due_dead_letter($1::bigint, $2::integer, make_interval(secs => $3::bigint / "
    "1000.0), $4::boolean, $5::boolean, $6::integer, $7::timestamptz)";

// NOT IN: an index of what is unresolved does not fit, and so the one of the numbers is taken. One
// that was alone is to be made alone. One whose try before is uncounted has the same number where
// it was not taken, but was not alone, and is due.
constexpr const char* kGiveBack = R"sql(
  UPDATE pawl.dead_letters d
     SET retries = $2::integer, tried_alone = nullif(d.tried_alone, false),
         tried_pid = NULL, tried_backend_start = NULL,
         due_at = clock_timestamp() + make_interval(secs => $3::bigint / 1000.0)
   WHERE d.dead_letter_id = $1::bigint AND d.retries = $2::integer + 1
     AND d.due_at IS NOT NULL AND d.status NOT IN ('replayed', 'discarded')
     AND (NOT $4::boolean OR d.tried_alone OR d.due_at > clock_timestamp())
)sql";

constexpr const char* kFailed = R"sql(
  UPDATE pawl.dead_letters d
     SET status = 'dead', reason = $3, sqlstate = nullif($4, ''), statement = nullif($8, ''),
         error = $5, error_detail = nullif($6, ''), died_at = clock_timestamp(),
         tried_alone = NULL, tried_pid = NULL, tried_backend_start = NULL,
         due_at = CASE WHEN $7::boolean THEN NULL ELSE d.due_at END
   WHERE d.dead_letter_id = $1::bigint AND d.retries = $2::integer
     AND d.due_at IS NOT NULL AND d.status NOT IN ('replayed', 'discarded')
)sql";

}  // namespace

DueLetters::DueLetters(const std::string& schema, ConsumerId consumer)
    : consumer_(consumer),
      due_{"pawl_due_letters", in_schema(kDue, schema)},
      any_{"pawl_any_due_letter", in_schema(kAny, schema)},
      take_{"pawl_claim_due_dead_letter", in_schema(kTake, schema)},
      give_back_{"pawl_give_back_letter", in_schema(kGiveBack, schema)},
      failed_{"pawl_retry_failed", in_schema(kFailed, schema)} {}

std::vector<DueLetter> DueLetters::due(postgres::Session& session, std::int64_t most) const {
  postgres::Parameters parameters;
  parameters.add_integer(static_cast<std::int64_t>(consumer_));
  parameters.add_integer(most);
  const auto found = session.exec(due_, parameters);
  const auto* rows = found.get();
  std::vector<DueLetter> letters;
  for (int row = 0; row < PQntuples(rows); ++row) {
    DueLetter letter{integer(rows, row, 0),
                     {text(rows, row, 1), static_cast<std::int32_t>(integer(rows, row, 2))},
                     integer(rows, row, 3),
                     text(rows, row, 4),
                     static_cast<std::int32_t>(integer(rows, row, 5)),
                     bytes(rows, row, 6)};
    letter.alone = boolean(rows, row, 7);
    letter.uncounted = letter.alone && boolean(rows, row, 8);
    letter.retries -= letter.uncounted ? 1 : 0;
    letters.push_back(std::move(letter));
  }
  return letters;
}

bool DueLetters::any(postgres::Session& session) const {
  postgres::Parameters parameters;
  parameters.add_integer(static_cast<std::int64_t>(consumer_));
  return boolean(session.exec(any_, parameters).get(), 0, 0);
}

bool DueLetters::take(postgres::Session& session, const DueLetter& letter,
                      std::chrono::milliseconds next) const {
  postgres::Parameters parameters;
  parameters.add_integer(letter.id);
  parameters.add_integer(letter.stored_retries());
  parameters.add_integer(next.count());
  parameters.add_text(letter.alone ? "true" : "false");
  parameters.add_text(letter.uncounted ? "true" : "false");
  add_backend(parameters, session);
  const auto results = postgres::run_transaction(session, {{&take_, std::move(parameters)}});
  return boolean(results[0].get(), 0, 0);
}

void DueLetters::give_back(postgres::Session& session, const DueLetter& letter,
                           std::chrono::milliseconds next) const {
  postgres::Parameters parameters;
  parameters.add_integer(letter.id);
  parameters.add_integer(letter.retries);
  parameters.add_integer(next.count());
  parameters.add_text(letter.uncounted ? "true" : "false");
  postgres::run_transaction(session, {{&give_back_, std::move(parameters)}});
}

void DueLetters::failed(postgres::Session& session, const DueLetter& letter,
                        const RetryFailure& failure) const {
  store_failure(session, letter, letter.retries + 1, failure);
}

void DueLetters::give_up(postgres::Session& session, const DueLetter& letter,
                         const std::string& reason, const std::string& why) const {
  RetryFailure failure;
  failure.reason = reason;
  failure.error = why;
  failure.last = true;
  store_failure(session, letter, letter.stored_retries(), failure);
}

void DueLetters::store_failure(postgres::Session& session, const DueLetter& letter,
                               std::int64_t retries, const RetryFailure& failure) const {
  postgres::Parameters parameters;
  parameters.add_integer(letter.id);
  parameters.add_integer(retries);
  parameters.add_text(failure.reason);
  parameters.add_text(failure.sqlstate);
  parameters.add_text(storable_text(failure.error, kLongestError));
  parameters.add_text(storable_text(failure.detail, kLongestError));
  parameters.add_text(failure.last ? "true" : "false");
  parameters.add_text(failure.statement);
  postgres::run_transaction(session, {{&failed_, std::move(parameters)}});
}

}  // namespace pawl::ledger
