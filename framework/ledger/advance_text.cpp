#include "ledger/advance_text.hpp"

#include <fmt/format.h>

#include "ledger/rows.hpp"

namespace pawl::ledger {
namespace {

const char* counter(Outcome outcome) {
  switch (outcome) {
    case Outcome::kApplied:
      return "       applied_count = r.applied_count + 1,";
    case Outcome::kDuplicate:
      return "       duplicate_count = r.duplicate_count + 1,";
    case Outcome::kSkipped:
      return "       skipped_count = r.skipped_count + 1,";
    case Outcome::kUnchecked:
      return "       applied_count = r.applied_count + 1,"
             "       unchecked_count = r.unchecked_count + 1,";
    case Outcome::kDead:
      return "       dead_count = r.dead_count + 1,";
    case Outcome::kParked:
      return "       parked_count = r.parked_count + 1,";
    case Outcome::kEndOfLog:
      break;
  }
  return "";
}

constexpr const char* kEndHalt =
    "       state = CASE r.state WHEN 'halted' THEN 'running' ELSE r.state END,"
    "       state_since = CASE r.state WHEN 'halted' THEN clock_timestamp() ELSE r.state_since END,"
    "       halt_kind = NULL, halt_code = NULL, halt_offset = NULL, halt_handler = NULL,"
    "       halt_cause = NULL, halt_parameters = NULL,";

constexpr const char* kRaiseCounters =
    "       applied_count = r.applied_count + $10::bigint,"
    "       duplicate_count = r.duplicate_count + $11::bigint,"
    "       unchecked_count = r.unchecked_count + $12::bigint,";

constexpr const char* kNow = "clock_timestamp()";

// Releases all advisory locks of the session and takes pawl's own again, in a value that the UPDATE
// writes anyway: a statement of its own, or a RETURNING, would cost more for each message. All
// branches give the same value. PostgreSQL evaluates the conditions in order, so the release comes
// first. One condition with an OR would not do: without a lock of pawl's own the second call is
// NULL, the OR is constant, and the planner drops the release (PostgreSQL manual, 4.2.14).
constexpr const char* kReleaseLocks =
    "CASE WHEN pg_advisory_unlock_all() IS NULL THEN clock_timestamp()"
    "     WHEN pg_advisory_lock_shared($10::integer, $11::integer) IS NULL THEN clock_timestamp()"
    "     ELSE clock_timestamp() END";

// One plain UPDATE, since it runs for every message: a function in PL/pgSQL, or a WITH around the
// UPDATE to look at its row count, is noticeably more work for the server. The row is there while
// it is owned (trigger keep_owned_rows), so the compare stands in the value instead of in WHERE,
// where it could only make an UPDATE of no rows. The leader epoch is that of the record at the new
// offset or unknown: an older one would end before that offset, as if the log had been truncated.
std::string text(const std::string& schema, bool claimed, std::string_view changes,
                 std::string_view now = kNow) {
  return in_schema(fmt::format(
                       R"sql(
  UPDATE pawl.processed_kafka_offsets r
     SET last_processed_offset =
           CASE WHEN r.owner_epoch = $4::bigint
                 AND r.last_processed_offset = $5::bigint
                 AND $6::bigint > $5::bigint
                 AND {}
                THEN $6::bigint
                ELSE pawl.reject_advance(r, $4::bigint, $5::bigint, $6::bigint,
                                         $7::xid8)
           END,
  {}
         leader_epoch = $8::integer,
         last_timestamp_ms = coalesce($9::bigint, r.last_timestamp_ms),
         updated_at = {}
   WHERE r.consumer_id = $1::integer AND r.topic = $2 AND r.partition = $3::integer
)sql",
                       claimed ? "$7::xid8 = pg_current_xact_id_if_assigned()" : "$7::xid8 IS NULL",
                       changes, now),
                   schema);
}

}  // namespace

std::string advance_text(const std::string& schema, const AdvanceKind& kind) {
  return text(schema, kind.claimed,
              fmt::format("{}{}", counter(kind.outcome), kind.halted ? kEndHalt : ""),
              kind.releases ? kReleaseLocks : kNow);
}

std::string advance_batch_text(const std::string& schema) {
  return text(schema, true, kRaiseCounters);
}

std::string_view end_halt_text() {
  return kEndHalt;
}

}  // namespace pawl::ledger
