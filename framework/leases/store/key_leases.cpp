#include "leases/store/key_leases.hpp"

#include <stdexcept>
#include <utility>

#include "ledger/partition_parameters.hpp"
#include "ledger/rows.hpp"
#include "postgres/array_elements.hpp"
#include "postgres/transaction.hpp"

namespace pawl::ledger {
namespace {

// The class is that of pawl.raise_fence.
constexpr const char* kHoldFence = "SELECT pg_advisory_xact_lock_shared(1885435750, $1::integer)";

constexpr const char* kAcquire = R"sql(
  SELECT answer, attempt, unknown_ms, response, holder, wait_ms
    FROM pawl.acquire_lease($1::integer, $2, $3, $4::bigint, $5::bigint, $6::bigint, $7::boolean,
                            $8::integer, $9::integer, $10::bigint, $11::integer, $12::bigint,
                            $13::integer, $14, $15::bytea)
)sql";

constexpr const char* kExtend = R"sql(
  SELECT place, how
    FROM pawl.extend_leases($1, $2::bigint, $3::integer[], $4::text[], $5::bigint[])
)sql";

constexpr const char* kRecord = R"sql(
  SELECT pawl.record_call($1::integer, $2, $3, $4::bigint, $5::bigint, $6::integer, $7::integer,
                          $8::bigint, $9::bytea, $10)
)sql";

constexpr const char* kGiveBack = R"sql(
  SELECT pawl.give_back_lease($1::integer, $2, $3, $4::bigint, $5, $6::boolean, $7::bytea)
)sql";

constexpr const char* kNoteLoss = R"sql(
  INSERT INTO pawl.lease_losses (scope_id, key, owner, attempt, returned, source_id, partition,
                                 kafka_offset)
  VALUES ($1::integer, $2, $3, $4::integer, $5::boolean, $6::integer, $7::integer, $8::bigint)
)sql";

void add(postgres::Parameters& parameters, const KeyLease& lease) {
  parameters.add_integer(static_cast<std::int64_t>(lease.scope));
  parameters.add_text(lease.key);
  parameters.add_text(lease.owner);
  parameters.add_integer(lease.token);
}

void add_message(postgres::Parameters& parameters, const LeaseSubject& subject) {
  parameters.add_integer(static_cast<std::int64_t>(subject.source));
  parameters.add_integer(subject.partition);
  parameters.add_integer(subject.offset);
}

void add_boolean(postgres::Parameters& parameters, bool value) {
  parameters.add_text(value ? "true" : "false");
}

void add_response(postgres::Parameters& parameters, const Response& response) {
  parameters.add_optional_bytes(response ? std::optional<std::string_view>(*response)
                                         : std::nullopt);
}

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
  throw std::logic_error("pawl.acquire_lease answered " + answer);
}

const char* text_of(GivenBack how) {
  switch (how) {
    case GivenBack::kNotBegun:
      return "not begun";
    case GivenBack::kNotDone:
      return "not done";
    case GivenBack::kUnknown:
      return "unknown";
    case GivenBack::kDone:
      break;
  }
  return "done";
}

}  // namespace

KeyLeases::KeyLeases(const std::string& schema)
    : hold_fence_{"pawl_hold_fence", kHoldFence},
      acquire_{"pawl_acquire_lease", in_schema(kAcquire, schema)},
      extend_{"pawl_extend_leases", in_schema(kExtend, schema)},
      record_{"pawl_record_call", in_schema(kRecord, schema)},
      give_back_{"pawl_give_back_lease", in_schema(kGiveBack, schema)},
      note_loss_{"pawl_note_lease_loss", in_schema(kNoteLoss, schema)} {}

LeaseAnswer KeyLeases::acquire(postgres::Session& session, const LeaseRequest& request) const {
  std::vector<postgres::Request> requests;
  postgres::Parameters parameters;
  add(parameters, request.lease);
  parameters.add_integer(request.time.count());
  parameters.add_integer(request.subject.payload_hash);
  add_boolean(parameters, request.any_payload);
  add_message(parameters, request.subject);
  if (request.fence) {
    // In a statement of its own: the one behind it must see what was committed while this waited.
    postgres::Parameters fence;
    fence.add_integer(static_cast<std::int64_t>(request.fence->id));
    requests.push_back({&hold_fence_, std::move(fence)});
    parameters.add_integer(static_cast<std::int64_t>(request.fence->id));
    parameters.add_integer(static_cast<std::int64_t>(request.fence->epoch));
  } else {
    parameters.add_null();
    parameters.add_null();
  }
  if (request.unless_parked) {
    add_record_key(parameters, *request.unless_parked);
  } else {
    for (int i = 0; i < 3; ++i)
      parameters.add_null();
  }
  requests.push_back({&acquire_, std::move(parameters)});
  const auto results = postgres::run_transaction(session, std::move(requests));
  const auto* rows = results.back().get();
  LeaseAnswer answer;
  answer.how = parse_answer(text(rows, 0, 0));
  answer.attempt = static_cast<std::uint32_t>(optional_integer(rows, 0, 1).value_or(0));
  if (const auto unknown = optional_integer(rows, 0, 2))
    answer.unknown_for = std::chrono::milliseconds(*unknown);
  answer.response = bytes(rows, 0, 3);
  if (!is_null(rows, 0, 4))
    answer.holder = text(rows, 0, 4);
  answer.wait = std::chrono::milliseconds(optional_integer(rows, 0, 5).value_or(0));
  return answer;
}

std::vector<Extended> KeyLeases::extend(postgres::Session& session, const std::string& owner,
                                        const std::vector<KeyLease>& leases,
                                        std::chrono::milliseconds time) const {
  postgres::ArrayElements scopes;
  postgres::ArrayElements keys;
  postgres::ArrayElements tokens;
  for (const auto& lease : leases) {
    scopes.add_integer(static_cast<std::int64_t>(lease.scope));
    keys.add_text(lease.key);
    tokens.add_integer(lease.token);
  }
  postgres::Parameters parameters;
  parameters.add_text(owner);
  parameters.add_integer(time.count());
  parameters.add_text(scopes.array());
  parameters.add_text(keys.array());
  parameters.add_text(tokens.array());
  const auto results = postgres::run_transaction(session, {{&extend_, std::move(parameters)}});
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

void KeyLeases::record(postgres::Request& request, const KeyLease& lease,
                       const LeaseSubject& subject, const Response& response,
                       const std::string& durable_commit) const {
  auto& parameters = request.to(record_);
  add(parameters, lease);
  parameters.add_integer(subject.payload_hash);
  add_message(parameters, subject);
  add_response(parameters, response);
  parameters.add_text_or_null(durable_commit);
}

bool KeyLeases::give_back(postgres::Session& session, const KeyLease& lease, GivenBack how,
                          bool settled, const Response& response) const {
  postgres::Parameters parameters;
  add(parameters, lease);
  parameters.add_text(text_of(how));
  add_boolean(parameters, settled);
  add_response(parameters, response);
  const auto results = postgres::run_transaction(session, {{&give_back_, std::move(parameters)}});
  return boolean(results.back().get(), 0, 0);
}

void KeyLeases::note_loss(postgres::Session& session, const KeyLease& lease,
                          const LeaseSubject& subject, std::uint32_t attempt, bool returned) const {
  postgres::Parameters parameters;
  parameters.add_integer(static_cast<std::int64_t>(lease.scope));
  parameters.add_text(lease.key);
  parameters.add_text(lease.owner);
  parameters.add_integer(attempt);
  add_boolean(parameters, returned);
  add_message(parameters, subject);
  (void)postgres::run_transaction(session, {{&note_loss_, std::move(parameters)}});
}

}  // namespace pawl::ledger
