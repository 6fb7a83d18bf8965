#include "leases/store/postgres_leases.hpp"

#include <stdexcept>
#include <utility>

#include "ledger/rows.hpp"
#include "ledger/verified.hpp"
#include "postgres/array_elements.hpp"
#include "postgres/transaction.hpp"

namespace pawl::ledger {
namespace {

constexpr const char* kAcquire = R"sql(
  SELECT answer, attempt, unknown_ms, response, holder, wait_ms
    FROM pawl.acquire_lease({scope}, $2, $3, $4::bigint, $5::bigint, $6::bigint, $7::boolean,
                            $8::integer, $9::integer, $10::bigint, $11::integer, $12::bigint,
                            $13::bigint, $14::integer, $15, $16::bytea)
)sql";

constexpr const char* kAttemptedBy = R"sql(
  SELECT owner FROM pawl.leases WHERE scope_id = $1::integer AND key = $2 AND owner IS NOT NULL
)sql";

constexpr const char* kExtend = R"sql(
  SELECT place, how
    FROM pawl.extend_leases($1, $2::bigint, $3::integer[], $4::text[], $5::bigint[])
)sql";

constexpr const char* kGiveBack = R"sql(
  SELECT pawl.release_lease($1::integer, $2, $3, $4::bigint, $5, $6::boolean, $7::bytea)
)sql";

// Whoever has the row may be about to commit it.
constexpr const char* kGiveBackLeft = R"sql(
  WITH free AS MATERIALIZED (
    SELECT 1 FROM pawl.leases
     WHERE scope_id = $1::integer AND key = $2 AND token = $4::bigint
       FOR UPDATE SKIP LOCKED)
  SELECT pawl.release_lease($1::integer, $2, $3, $4::bigint, $5, $6::boolean, $7::bytea)
    FROM free
)sql";

LeaseAnswer::How parse_answer(const std::string& answer) {
  using How = LeaseAnswer::How;
  if (answer == "mine")
    return How::kMine;
  if (answer == "done")
    return How::kDone;
  if (answer == "pending")
    return How::kPending;
  if (answer == "finished")
    return How::kFinished;
  if (answer == "parked")
    return How::kParked;
  if (answer == "conflict")
    return How::kConflict;
  throw std::logic_error("pawl.acquire_lease returned " + answer);
}

const char* text_of(GivenBack how) {
  switch (how) {
    case GivenBack::kNotBegun:
      return "not started";
    case GivenBack::kNotDone:
      return "not done";
    case GivenBack::kUnknown:
      return "unknown";
    case GivenBack::kDone:
      break;
  }
  return "done";
}

postgres::Parameters giving_back(const KeyLease& lease, GivenBack how, bool settled,
                                 const Response& response) {
  postgres::Parameters parameters;
  add_lease(parameters, lease);
  parameters.add_text(text_of(how));
  add_boolean(parameters, settled);
  add_response(parameters, response);
  return parameters;
}

}  // namespace

PostgresLeases::PostgresLeases(const std::string& schema, postgres::SessionSettings extending,
                               std::chrono::milliseconds time)
    : extending_(std::move(extending)),
      time_(time),
      records_(schema),
      acquire_(with_scope("pawl_acquire_lease", kAcquire, 1, 17, schema)),
      attempted_by_{"pawl_lease_attempted_by", in_schema(kAttemptedBy, schema)},
      extend_{"pawl_extend_leases", in_schema(kExtend, schema)},
      give_back_{"pawl_release_lease", in_schema(kGiveBack, schema)},
      give_back_left_{"pawl_give_back_left_lease", in_schema(kGiveBackLeft, schema)} {}

LeaseAnswer PostgresLeases::acquire(postgres::Session& session, LeaseRequest& request) const {
  postgres::Parameters parameters;
  add_lease(parameters, request.lease);
  parameters.add_integer(request.time.count());
  parameters.add_integer(request.subject.payload_hash);
  add_boolean(parameters, request.any_payload);
  add_message(parameters, request.subject);
  auto requests = records_.begin(parameters, request);
  parameters.add_text(request.lease.scope.name);
  requests.push_back({&acquire_, std::move(parameters)});
  std::vector<postgres::Result> results;
  try {
    results = postgres::run_transaction(session, std::move(requests));
  } catch (const postgres::InDoubt&) {
    request.may_be_given = true;
    throw;
  }
  const auto* rows = results.back().get();
  LeaseAnswer answer;
  answer.how = parse_answer(text(rows, 0, 0));
  answer.attempt = static_cast<std::uint32_t>(optional_integer(rows, 0, 1).value_or(0));
  if (const auto unknown = optional_integer(rows, 0, 2))
    answer.unknown_for = std::chrono::milliseconds(*unknown);
  answer.response = bytes(rows, 0, 3);
  if (!is_null(rows, 0, 4))
    answer.holder = text(rows, 0, 4);
  const auto time = optional_integer(rows, 0, 5);
  if (answer.how == LeaseAnswer::How::kPending) {
    answer.wait = std::chrono::milliseconds(time.value_or(0));
  } else if (time) {
    answer.last_ago = std::chrono::milliseconds(*time);
  }
  return answer;
}

std::optional<std::string> PostgresLeases::attempted_by(postgres::Session& session,
                                                        const Scope& scope,
                                                        const std::string& key) const {
  postgres::Parameters parameters;
  parameters.add_integer(static_cast<std::int64_t>(scope.id));
  parameters.add_text(key);
  const auto results =
      postgres::run_relaxed_transaction(session, {{&attempted_by_, std::move(parameters)}});
  const auto* rows = results.front().get();
  return PQntuples(rows) == 0 ? std::nullopt : std::optional(text(rows, 0, 0));
}

class PostgresLeases::Extender final : public LeaseExtender {
 public:
  Extender(postgres::SessionSettings settings, const PostgresLeases& leases)
      : settings_(std::move(settings)), leases_(leases) {}

  [[nodiscard]] std::vector<Extended> extend(const std::vector<KeyLease>& leases) override {
    postgres::ArrayElements scopes;
    postgres::ArrayElements keys;
    postgres::ArrayElements tokens;
    for (const auto& lease : leases) {
      scopes.add_integer(static_cast<std::int64_t>(lease.scope.id));
      keys.add_text(lease.key);
      tokens.add_integer(lease.token);
    }
    postgres::Parameters parameters;
    // All are this process'.
    parameters.add_text(leases.front().owner);
    parameters.add_integer(leases_.time_.count());
    parameters.add_text(scopes.array());
    parameters.add_text(keys.array());
    parameters.add_text(tokens.array());
    const auto results = run({&leases_.extend_, std::move(parameters)});
    const auto* rows = results.back().get();
    std::vector<Extended> extended(leases.size(), Extended::kLost);
    for (int row = 0; row < PQntuples(rows); ++row) {
      const auto how = text(rows, row, 1);
      extended.at(static_cast<std::size_t>(integer(rows, row, 0))) =
          how == "extended" ? Extended::kExtended
          : how == "busy"   ? Extended::kBusy
                            : Extended::kLost;
    }
    return extended;
  }

  [[nodiscard]] bool give_back(const LeftLease& left) override {
    const auto results = run(
        {&leases_.give_back_left_, giving_back(left.lease, left.how, left.settled, left.response)});
    const auto* rows = results.back().get();
    return PQntuples(rows) > 0 && boolean(rows, 0, 0);
  }

 private:
  [[nodiscard]] std::vector<postgres::Result> run(postgres::Request request) {
    try {
      if (!session_)
        session_ = std::make_unique<postgres::Session>(settings_);
      return postgres::run_transaction(*session_, {std::move(request)});
    } catch (...) {
      // Whatever it was, a new one prepares its statements anew.
      session_.reset();
      throw;
    }
  }

  const postgres::SessionSettings settings_;
  const PostgresLeases& leases_;
  std::unique_ptr<postgres::Session> session_;
};

std::unique_ptr<LeaseExtender> PostgresLeases::make_extender(
    const std::atomic<bool>& unwanted) const {
  auto settings = extending_;
  settings.answer_timeout = time_ / 3;
  settings.unwanted = &unwanted;
  return std::make_unique<Extender>(std::move(settings), *this);
}

void PostgresLeases::record(postgres::Request& request, const KeyLease& lease,
                            const LeaseSubject& subject, const Response& response,
                            const std::string& durable_commit) const {
  records_.record(request, lease, true, subject, response, durable_commit);
}

bool PostgresLeases::give_back(postgres::Session& session, const KeyLease& lease, GivenBack how,
                               bool settled, const Response& response) const {
  const auto results = postgres::run_transaction(
      session, {{&give_back_, giving_back(lease, how, settled, response)}});
  return boolean(results.back().get(), 0, 0);
}

void PostgresLeases::note_loss(postgres::Session& session, const KeyLease& lease,
                               const LeaseSubject& subject, std::uint32_t attempt,
                               bool returned) const {
  records_.note_loss(session, lease, subject, attempt, returned);
}

}  // namespace pawl::ledger
