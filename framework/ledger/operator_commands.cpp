#include "ledger/operator_commands.hpp"

#include "ledger/advance_text.hpp"
#include "ledger/rows.hpp"
#include "postgres/transaction.hpp"

namespace pawl::ledger {
namespace {

constexpr const char* kChange =
    "SELECT pawl.operator_change($1::integer, $2, $3::integer, $4::bigint, $5, $6, $7)";

postgres::Parameters partition_parameters(ConsumerId consumer, const TopicPartition& partition) {
  postgres::Parameters parameters;
  parameters.add_integer(static_cast<std::int64_t>(consumer));
  parameters.add_text(partition.topic);
  parameters.add_integer(partition.partition);
  return parameters;
}

void add_optional(postgres::Parameters& parameters, const std::string& text) {
  if (text.empty()) {
    parameters.add_null();
  } else {
    parameters.add_text(text);
  }
}

}  // namespace

OperatorCommands::OperatorCommands(const std::string& schema, ConsumerId consumer)
    : consumer_(consumer),
      skipped_(schema, consumer),
      change_{"pawl_operator_change", in_schema(kChange, schema)},
      advance_{"pawl_operator_advance", advance_text(schema, {Outcome::kSkipped, false, true})} {}

std::int64_t OperatorCommands::change(postgres::Session& session,
                                      const OperatorChange& change) const {
  auto parameters = partition_parameters(consumer_, change.partition);
  if (change.last_processed) {
    parameters.add_integer(*change.last_processed);
  } else {
    parameters.add_null();
  }
  add_optional(parameters, change.state ? to_string(*change.state) : "");
  parameters.add_text(change.action);
  add_optional(parameters, change.reason);
  const auto results = postgres::run_transaction(session, {{&change_, std::move(parameters)}});
  return integer(results.front().get(), 0, 0);
}

void OperatorCommands::skip(postgres::Session& session, const OperatorSkip& skip,
                            const Message& message) const {
  // The owner's own compare-and-set, made with the epoch that the operator has seen: it raises when
  // anybody has moved or acquired the partition since.
  auto advance = partition_parameters(consumer_, skip.partition);
  advance.add_integer(static_cast<std::int64_t>(skip.epoch));
  advance.add_integer(skip.stored_offset);
  advance.add_integer(message.offset());
  advance.add_null();
  advance.add_null();
  if (message.timestamp_ms() >= 0) {
    advance.add_integer(message.timestamp_ms());
  } else {
    advance.add_null();
  }
  postgres::Parameters record;
  skipped_.fill(record, message, skip.reason, true);
  // Fences the owner, which has this message in hand or waits before it.
  auto change = partition_parameters(consumer_, skip.partition);
  change.add_null();
  change.add_null();
  change.add_text("skip");
  add_optional(change, skip.reason);
  postgres::run_transaction(session, {{&advance_, std::move(advance)},
                                      {&skipped_.record_statement(), std::move(record)},
                                      {&change_, std::move(change)}});
}

}  // namespace pawl::ledger
