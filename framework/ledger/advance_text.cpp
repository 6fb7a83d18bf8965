#include "ledger/advance_text.hpp"

#include "ledger/rows.hpp"

namespace pawl::ledger {
namespace {

// Plain SQL instead of a function: this runs for every message, and a function in PL/pgSQL costs
// the server as much again as the UPDATE itself.
constexpr const char* kAdvance =
    "WITH moved AS ("
    "  UPDATE pawl.processed_kafka_offsets r"
    "     SET last_processed_offset = $6::bigint,"
    "         applied_count = r.applied_count + ($8 IN ('applied', 'unchecked'))::integer,"
    "         duplicate_count = r.duplicate_count + ($8 = 'duplicate')::integer,"
    "         skipped_count = r.skipped_count + ($8 = 'skipped')::integer,"
    "         unchecked_count = r.unchecked_count + ($8 = 'unchecked')::integer,"
    "         leader_epoch = coalesce($9::integer, r.leader_epoch),"
    "         last_timestamp_ms = coalesce($10::bigint, r.last_timestamp_ms),"
    "         state = CASE r.state WHEN 'halted' THEN 'running' ELSE r.state END,"
    "         halt_kind = NULL,"
    "         state_reason = CASE r.state WHEN 'halted' THEN NULL ELSE r.state_reason END,"
    "         state_since = CASE r.state WHEN 'halted' THEN clock_timestamp() ELSE r.state_since "
    "END,"
    "         updated_at = clock_timestamp()"
    "   WHERE r.consumer_id = $1::integer AND r.topic = $2 AND r.partition = $3::integer"
    "     AND r.owner_epoch = $4::bigint"
    "     AND r.last_processed_offset = $5::bigint"
    "     AND $6::bigint > $5::bigint"
    "     AND ($7::xid8 IS NULL OR $7::xid8 = pg_current_xact_id_if_assigned())"
    "  RETURNING true)"
    " SELECT pawl.refuse_advance($1::integer, $2, $3::integer, $4::bigint, $5::bigint, $6::bigint,"
    "                            $7::xid8)"
    "  WHERE NOT EXISTS (SELECT FROM moved)";

}  // namespace

std::string advance_text(const std::string& schema) {
  return in_schema(kAdvance, schema);
}

}  // namespace pawl::ledger
