#include "retention/store/old_records.hpp"

#include "ledger/rows.hpp"
#include "postgres/transaction.hpp"

namespace pawl::ledger {
namespace {

// That records are gone is stored with the removal itself.
constexpr const char* kMarkRecords =
    "     mark AS ("
    "       UPDATE pawl.retention_state"
    "          SET records_pruned_to ="
    "                greatest(records_pruned_to, to_timestamp($2::bigint / 1000.0))"
    "        WHERE consumer_id = $1::integer AND EXISTS (SELECT FROM gone))"
    "SELECT count(*) FROM gone";

constexpr const char* kLetters = R"sql(
  WITH old AS (
         SELECT dead_letter_id FROM pawl.dead_letters
          WHERE consumer_id = $1::integer AND resolved_at < to_timestamp($2::bigint / 1000.0)
          ORDER BY resolved_at LIMIT $3::bigint),
       gone AS (
         DELETE FROM pawl.dead_letters WHERE dead_letter_id = ANY (ARRAY(SELECT dead_letter_id FROM old))
         RETURNING 1),
)sql";

constexpr const char* kSkipped = R"sql(
  WITH old AS (
         SELECT skip_id FROM pawl.skipped_messages
          WHERE consumer_id = $1::integer AND skipped_at < to_timestamp($2::bigint / 1000.0)
          ORDER BY skipped_at LIMIT $3::bigint),
       gone AS (
         DELETE FROM pawl.skipped_messages WHERE skip_id = ANY (ARRAY(SELECT skip_id FROM old))
         RETURNING 1),
)sql";

constexpr const char* kDiscarded = R"sql(
  WITH old AS (
         SELECT outbox_id FROM pawl.outbox_failed
          WHERE status = 'discarded' AND resolved_at < to_timestamp($1::bigint / 1000.0)
          ORDER BY resolved_at LIMIT $2::bigint),
       gone AS (
         DELETE FROM pawl.outbox_failed WHERE outbox_id = ANY (ARRAY(SELECT outbox_id FROM old))
         RETURNING 1)
  SELECT count(*) FROM gone
)sql";

constexpr const char* kCountDiscarded = R"sql(
  SELECT count(*) FROM pawl.outbox_failed
   WHERE status = 'discarded' AND resolved_at < to_timestamp($1::bigint / 1000.0)
)sql";

constexpr const char* kLosses = R"sql(
  WITH old AS (
         SELECT loss_id FROM pawl.lease_losses
          WHERE lost_at < to_timestamp($1::bigint / 1000.0)
          ORDER BY loss_id LIMIT $2::bigint),
       gone AS (
         DELETE FROM pawl.lease_losses WHERE loss_id = ANY (ARRAY(SELECT loss_id FROM old))
         RETURNING 1)
  SELECT count(*) FROM gone
)sql";

constexpr const char* kCountLosses =
    "SELECT count(*) FROM pawl.lease_losses WHERE lost_at < to_timestamp($1::bigint / 1000.0)";

constexpr const char* kCountLetters = R"sql(
  SELECT count(*) FROM pawl.dead_letters
   WHERE consumer_id = $1::integer AND resolved_at < to_timestamp($2::bigint / 1000.0)
)sql";

constexpr const char* kCountSkipped = R"sql(
  SELECT count(*) FROM pawl.skipped_messages
   WHERE consumer_id = $1::integer AND skipped_at < to_timestamp($2::bigint / 1000.0)
)sql";

}  // namespace

OldRecords OldRecords::letters(const std::string& schema, ConsumerId consumer) {
  return {{"pawl_retention_letters", in_schema(std::string(kLetters) + kMarkRecords, schema)},
          {"", in_schema(kCountLetters, schema)},
          consumer};
}

OldRecords OldRecords::skipped(const std::string& schema, ConsumerId consumer) {
  return {{"pawl_retention_skipped", in_schema(std::string(kSkipped) + kMarkRecords, schema)},
          {"", in_schema(kCountSkipped, schema)},
          consumer};
}

OldRecords OldRecords::discarded(const std::string& schema) {
  return {{"pawl_retention_discarded", in_schema(kDiscarded, schema)},
          {"", in_schema(kCountDiscarded, schema)},
          std::nullopt};
}

OldRecords OldRecords::losses(const std::string& schema) {
  return {{"pawl_retention_losses", in_schema(kLosses, schema)},
          {"", in_schema(kCountLosses, schema)},
          std::nullopt};
}

postgres::Parameters OldRecords::parameters(Instant before) const {
  postgres::Parameters parameters;
  if (consumer_)
    parameters.add_integer(static_cast<std::int64_t>(*consumer_));
  parameters.add_integer(before.time_since_epoch().count());
  return parameters;
}

std::int64_t OldRecords::remove(postgres::Session& session, Instant before,
                                std::int64_t most) const {
  auto given = parameters(before);
  given.add_integer(most);
  const auto answers = postgres::run_relaxed_transaction(session, {{&remove_, std::move(given)}});
  return integer(answers.front().get(), 0, 0);
}

std::int64_t OldRecords::count(postgres::Session& session, Instant before) const {
  auto given = parameters(before);
  return integer(session.exec(count_, given).get(), 0, 0);
}

}  // namespace pawl::ledger
