#include "leases/store/call_records.hpp"

#include <stdexcept>
#include <utility>

#include "ledger/partition_parameters.hpp"
#include "ledger/rows.hpp"
#include "ledger/verified.hpp"
#include "postgres/transaction.hpp"

namespace pawl::ledger {
namespace {

// The class is that of pawl.raise_fence.
constexpr const char* kHoldFence = "SELECT pg_advisory_xact_lock_shared(1885435750, $1::integer)";

constexpr const char* kLookBeforeCall = R"sql(
  SELECT pawl.check_before_call({scope}, $2, $3::integer, $4::bigint, $5::bigint, $6::integer, $7,
                               $8::bytea)
)sql";

constexpr const char* kRecord = R"sql(
  SELECT pawl.record_call({scope}, $2, $3, $4::bigint, $5::bigint, $6::integer, $7::integer,
                          $8::bigint, $9::bytea, $10)
)sql";

constexpr const char* kNoteLoss = R"sql(
  INSERT INTO pawl.lease_losses (scope_id, key, owner, attempt, returned, source_id, partition,
                                 kafka_offset)
  VALUES ($1::integer, $2, $3, $4::integer, $5::boolean, $6::integer, $7::integer, $8::bigint)
)sql";

CallRecords::Known parse_known(const std::string& answer) {
  using Known = CallRecords::Known;
  if (answer == "free")
    return Known::kNothing;
  if (answer == "finished")
    return Known::kFinished;
  if (answer == "parked")
    return Known::kParked;
  if (answer == "held")
    return Known::kHeld;
  if (answer == "busy")
    return Known::kBusy;
  throw std::logic_error("pawl.check_before_call returned " + answer);
}

}  // namespace

void add_lease(postgres::Parameters& parameters, const KeyLease& lease) {
  parameters.add_integer(static_cast<std::int64_t>(lease.scope.id));
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

CallRecords::CallRecords(const std::string& schema)
    : hold_fence_{"pawl_hold_fence", kHoldFence},
      require_predecessor_{
          "pawl_require_predecessor",
          in_schema("SELECT pawl.require_predecessor($1::integer, $2::bigint)", schema)},
      look_before_call_(with_scope("pawl_check_before_call", kLookBeforeCall, 1, 9, schema)),
      record_(
          verifying("pawl_record_call", kRecord, "{scope}", verified_scope(1, 11, schema), schema)),
      note_loss_{"pawl_note_lease_loss", in_schema(kNoteLoss, schema)} {}

std::vector<postgres::Request> CallRecords::begin(postgres::Parameters& parameters,
                                                  const LeaseRequest& request) const {
  std::vector<postgres::Request> requests;
  if (request.fence) {
    // In a statement of its own: the one behind it must see what was committed while this waited.
    postgres::Parameters fence;
    fence.add_integer(static_cast<std::int64_t>(request.fence->id));
    requests.push_back({&hold_fence_, std::move(fence)});
    if (request.fence->predecessor) {
      postgres::Parameters before;
      before.add_integer(static_cast<std::int64_t>(request.fence->id));
      before.add_integer(*request.fence->predecessor);
      requests.push_back({&require_predecessor_, std::move(before)});
    }
    parameters.add_integer(static_cast<std::int64_t>(request.fence->id));
    parameters.add_integer(static_cast<std::int64_t>(request.fence->epoch));
    parameters.add_integer(request.fence->stored.last());
  } else {
    for (int i = 0; i < 3; ++i)
      parameters.add_null();
  }
  if (request.unless_parked) {
    add_record_key(parameters, *request.unless_parked);
  } else {
    for (int i = 0; i < 3; ++i)
      parameters.add_null();
  }
  return requests;
}

CallRecords::Known CallRecords::check_before_call(postgres::Session& session,
                                                  const LeaseRequest& request) const {
  postgres::Parameters parameters;
  parameters.add_integer(static_cast<std::int64_t>(request.lease.scope.id));
  parameters.add_text(request.lease.key);
  auto requests = begin(parameters, request);
  parameters.add_text(request.lease.scope.name);
  requests.push_back({&look_before_call_, std::move(parameters)});
  const auto results = postgres::run_transaction(session, std::move(requests));
  return parse_known(text(results.back().get(), 0, 0));
}

void CallRecords::record(postgres::Request& request, const KeyLease& lease, bool has_row,
                         const LeaseSubject& subject, const Response& response,
                         const std::string& durable_commit) const {
  auto& parameters = request.to(record_);
  parameters.add_integer(static_cast<std::int64_t>(lease.scope.id));
  parameters.add_text(lease.key);
  if (has_row) {
    parameters.add_text(lease.owner);
    parameters.add_integer(lease.token);
  } else {
    parameters.add_null();
    parameters.add_null();
  }
  parameters.add_integer(subject.payload_hash);
  add_message(parameters, subject);
  add_response(parameters, response);
  parameters.add_text_or_null(durable_commit);
  parameters.add_text(lease.scope.name);
}

void CallRecords::note_loss(postgres::Session& session, const KeyLease& lease,
                            const LeaseSubject& subject, std::uint32_t attempt,
                            bool returned) const {
  postgres::Parameters parameters;
  parameters.add_integer(static_cast<std::int64_t>(lease.scope.id));
  parameters.add_text(lease.key);
  parameters.add_text(lease.owner);
  parameters.add_integer(attempt);
  add_boolean(parameters, returned);
  add_message(parameters, subject);
  (void)postgres::run_transaction(session, {{&note_loss_, std::move(parameters)}});
}

}  // namespace pawl::ledger
