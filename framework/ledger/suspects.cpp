#include "ledger/suspects.hpp"

#include "ledger/partition_parameters.hpp"
#include "ledger/rows.hpp"
#include "postgres/transaction.hpp"

namespace pawl::ledger {
namespace {

constexpr const char* kMark = R"sql(
  SELECT pawl.mark_suspect($1::integer, $2, $3::integer, $4::bigint, $5::bigint, $6,
                           $7::integer, $8::timestamptz, $9::integer)
)sql";

// A partition has one row at most; the aggregate gives NULL for none.
constexpr const char* kMarked = R"sql(
  SELECT max(kafka_offset) FROM pawl.suspects
   WHERE consumer_id = $1::integer AND topic = $2 AND partition = $3::integer
     AND (crashes > 0 OR marked_by IS NOT NULL)
)sql";

constexpr const char* kClear = R"sql(
  DELETE FROM pawl.suspects
   WHERE consumer_id = $1::integer AND topic = $2 AND partition = $3::integer
     AND (marked_by = $4 OR marked_by IS NULL)
)sql";

constexpr const char* kIsAlive = R"sql(
  SELECT EXISTS (SELECT FROM pg_stat_activity a
                  WHERE a.pid = $1::integer AND a.backend_start = $2::timestamptz
                    AND a.state LIKE 'idle%')
)sql";

}  // namespace

Suspects::Suspects(const std::string& schema, ConsumerId consumer)
    : consumer_(consumer),
      mark_{"pawl_mark_suspect", in_schema(kMark, schema)},
      marked_{"pawl_marked_suspect", in_schema(kMarked, schema)},
      clear_{"pawl_clear_suspect", in_schema(kClear, schema)},
      is_alive_{"pawl_owner_is_alive", kIsAlive} {}

std::optional<std::uint32_t> Suspects::mark(postgres::Session& session,
                                            const TopicPartition& partition, OwnerEpoch epoch,
                                            std::int64_t offset, const std::string& owner,
                                            std::uint32_t most) const {
  auto parameters = partition_parameters(consumer_, partition);
  parameters.add_integer(static_cast<std::int64_t>(epoch));
  parameters.add_integer(offset);
  parameters.add_text(owner);
  add_backend(parameters, session);
  parameters.add_integer(most);
  const auto results = postgres::run_transaction(session, {{&mark_, std::move(parameters)}});
  const auto crashes = optional_integer(results.front().get(), 0, 0);
  return crashes ? std::optional(static_cast<std::uint32_t>(*crashes)) : std::nullopt;
}

std::optional<std::int64_t> Suspects::marked(postgres::Session& session,
                                             const TopicPartition& partition) const {
  const auto results = postgres::run_relaxed_transaction(
      session, {{&marked_, partition_parameters(consumer_, partition)}});
  return optional_integer(results.front().get(), 0, 0);
}

bool Suspects::is_alive(postgres::Session& session, const postgres::Backend& backend) const {
  postgres::Parameters parameters;
  parameters.add_integer(backend.pid);
  parameters.add_text(backend.backend_start);
  const auto results =
      postgres::run_relaxed_transaction(session, {{&is_alive_, std::move(parameters)}});
  return boolean(results.front().get(), 0, 0);
}

void Suspects::clear(postgres::Session& session, const TopicPartition& partition,
                     const std::string& owner) const {
  auto parameters = partition_parameters(consumer_, partition);
  parameters.add_text(owner);
  postgres::run_transaction(session, {{&clear_, std::move(parameters)}});
}

}  // namespace pawl::ledger
