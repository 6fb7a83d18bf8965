#include "ledger/marks.hpp"

#include "ledger/partition_parameters.hpp"
#include "ledger/rows.hpp"
#include "postgres/transaction.hpp"

namespace pawl::ledger {
namespace {

constexpr const char* kRemove = R"sql(
  WITH suspect AS (
    UPDATE pawl.suspects SET marked_by = NULL
     WHERE consumer_id = $1::integer AND topic = $2 AND partition = $3::integer
       AND marked_by = $4)
  UPDATE pawl.first_fetches SET fetched_by = NULL
   WHERE consumer_id = $1::integer AND topic = $2 AND partition = $3::integer
     AND fetched_by = $4
)sql";

}  // namespace

Marks::Marks(const std::string& schema, ConsumerId consumer)
    : consumer_(consumer), remove_{"pawl_remove_marks", in_schema(kRemove, schema)} {}

void Marks::remove(postgres::Session& session, const TopicPartition& partition,
                   const std::string& owner) const {
  auto parameters = partition_parameters(consumer_, partition);
  parameters.add_text(owner);
  postgres::run_transaction(session, {{&remove_, std::move(parameters)}});
}

}  // namespace pawl::ledger
