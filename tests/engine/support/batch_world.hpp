#pragma once

#include <cstdint>

#include "modes.hpp"
#include "payments_world.hpp"

namespace pawl::test {

/// Like kBatchCode, but it fails on a poisoned message.
inline constexpr const char* kBatchPoison = "name = \"batch_throws_on_poison\"";

/// Keeps the order in which the ledger is written.
inline void note_order(const PaymentsWorld& world) {
  world.execute(
      "CREATE TABLE ordered (place bigserial, event_id text);"
      "CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN INSERT INTO ordered "
      "(event_id) VALUES (NEW.event_id); RETURN NEW; END$$;"
      "CREATE TRIGGER note AFTER INSERT ON ledger FOR EACH ROW EXECUTE FUNCTION note()");
}

/// Messages that came into the ledger before their partition's predecessor.
inline std::int64_t out_of_order(const PaymentsWorld& world) {
  return world.number(
      "SELECT count(*) FROM (SELECT kafka_offset, lag(kafka_offset) OVER (PARTITION BY partition "
      "ORDER BY place) AS previous FROM ordered JOIN pawl.idempotency_keys ON key = event_id) o "
      "WHERE kafka_offset < previous");
}

/// By which the ledger was written.
inline std::int64_t transactions(const PaymentsWorld& world) {
  return world.number("SELECT count(DISTINCT xmin::text) FROM ledger");
}

/// What a consumer with one of the handlers above has got at once.
inline int largest_batch(const testing::ChildProcess& process) {
  int largest = 0;
  const auto output = process.output();
  for (std::size_t at = output.find("BATCH "); at != std::string::npos;
       at = output.find("BATCH ", at + 1))
    largest = std::max(largest, std::stoi(output.substr(at + 6)));
  return largest;
}

}  // namespace pawl::test
