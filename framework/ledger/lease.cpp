#include "ledger/lease.hpp"

#include <fmt/format.h>

#include "ledger/rows.hpp"
#include "postgres/transaction.hpp"

namespace pawl::ledger {
namespace {

// A lease that lasts longer than any can was given before the server's clock went back. It would
// stay with its holder, dead or not, until the clock has caught up. By the clock as it is when the
// row is there: another holder may have come while this statement waited for it.
constexpr const char* kTake = R"sql(
  INSERT INTO {} AS l (consumer_id, holder, lease_until)
  VALUES ($1::integer, $2, clock_timestamp() + make_interval(secs => $3::bigint / 1000.0))
  ON CONFLICT (consumer_id) DO UPDATE
    SET holder = excluded.holder, lease_until = excluded.lease_until
  WHERE l.holder IS NULL OR l.holder = excluded.holder OR l.lease_until < clock_timestamp()
     OR l.lease_until > clock_timestamp() + 2 * make_interval(secs => $3::bigint / 1000.0)
  RETURNING 1
)sql";

constexpr const char* kRelease = R"sql(
  UPDATE {} SET holder = NULL, lease_until = NULL
   WHERE consumer_id = $1::integer AND holder = $2
)sql";

postgres::Statement statement(std::string_view name, const char* does, const char* text,
                              std::string_view table, const std::string& schema) {
  return {fmt::format("pawl_{}_{}", name, does),
          in_schema(fmt::format(fmt::runtime(text), table), schema)};
}

}  // namespace

Lease::Lease(std::string_view name, std::string_view table, Durability durability,
             const std::string& schema, ConsumerId consumer)
    : durability_(durability),
      consumer_(consumer),
      take_(statement(name, "lease", kTake, table, schema)),
      release_(statement(name, "release", kRelease, table, schema)) {}

bool Lease::take(postgres::Session& session, const std::string& holder,
                 std::chrono::milliseconds time) const {
  postgres::Parameters parameters;
  parameters.add_integer(static_cast<std::int64_t>(consumer_));
  parameters.add_text(holder);
  parameters.add_integer(time.count());
  const auto run = durability_ == Durability::kDurable ? &postgres::run_transaction
                                                       : &postgres::run_relaxed_transaction;
  const auto answers = run(session, {{&take_, std::move(parameters)}});
  return PQntuples(answers.front().get()) == 1;
}

void Lease::release(postgres::Session& session, const std::string& holder) const {
  postgres::Parameters parameters;
  parameters.add_integer(static_cast<std::int64_t>(consumer_));
  parameters.add_text(holder);
  postgres::run_relaxed_transaction(session, {{&release_, std::move(parameters)}});
}

}  // namespace pawl::ledger
