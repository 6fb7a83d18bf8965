#include "register_moves.hpp"

#include <fmt/format.h>

namespace pawl::test {
namespace {

// In the transaction of the move itself, so that only what commits is kept, in commit order per
// partition (the register row is locked until then).
constexpr const char* kRecord = R"(
  CREATE TABLE moves (move_id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, topic text,
                      partition integer, epoch bigint, owner text, previous bigint, next bigint);
  CREATE FUNCTION record_move() RETURNS trigger LANGUAGE plpgsql AS $$
  BEGIN
    INSERT INTO moves (topic, partition, epoch, owner, previous, next)
    VALUES (new.topic, new.partition, new.owner_epoch, new.owner,
            old.last_processed_offset, new.last_processed_offset);
    RETURN NULL;
  END $$;
  CREATE TRIGGER record_move AFTER UPDATE ON pawl.processed_kafka_offsets
    FOR EACH ROW WHEN (old.last_processed_offset <> new.last_processed_offset)
    EXECUTE FUNCTION record_move();
)";

constexpr const char* kViolations = R"(
  SELECT string_agg(format('[%s] %s -> %s by %s (epoch %s), after %s (epoch %s)', partition,
                           previous, next, owner, epoch, before, before_epoch), E'\n')
    FROM (SELECT *, lag(next) OVER w AS before, lag(epoch) OVER w AS before_epoch
            FROM moves WINDOW w AS (PARTITION BY topic, partition ORDER BY move_id)) m
   WHERE next <= previous OR previous <> before OR epoch < before_epoch
)";

}  // namespace

RegisterMoves::RegisterMoves(const PaymentsWorld& world) : world_(world) {
  world_.execute(kRecord);
}

std::string RegisterMoves::violations() const {
  return world_.value(kViolations);
}

std::int64_t RegisterMoves::made_by(const std::string& owner) const {
  return world_.number(fmt::format("SELECT count(*) FROM moves WHERE owner = '{}'", owner));
}

std::int64_t RegisterMoves::movers() const {
  return world_.number("SELECT count(DISTINCT owner) FROM moves");
}

}  // namespace pawl::test
