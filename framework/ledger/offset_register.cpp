#include "ledger/offset_register.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <ranges>

#include "ledger/advance_text.hpp"
#include "ledger/partition_parameters.hpp"
#include "ledger/rows.hpp"
#include "postgres/exact_time.hpp"
#include "postgres/transaction.hpp"

namespace pawl::ledger {
namespace {

constexpr const char* kAcquire = R"sql(
  SELECT epoch, stored_offset, state, operator_reason, topic_id, leader_epoch, released,
         previous_owner, previous_pid, {}, fence,
         halt_kind, halt_code, halt_offset, halt_handler, halt_cause, halt_parameters
    FROM pawl.acquire($1::integer, $2, $3::integer, $4, $5::integer, $6::timestamptz)
)sql";

constexpr const char* kRelease = "SELECT pawl.release($1::integer, $2, $3::integer, $4::bigint)";

// Behind pawl.release in its transaction, under the row's lock.
constexpr const char* kStoreSuspectsLeft = R"sql(
  UPDATE pawl.processed_kafka_offsets
     SET suspects_left = $5::boolean
   WHERE consumer_id = $1::integer AND topic = $2 AND partition = $3::integer
     AND owner_epoch = $4::bigint AND suspects_left <> $5::boolean
)sql";

constexpr const char* kHalt = R"sql(
  SELECT pawl.halt($1::integer, $2, $3::integer, $4::bigint, $5, $6, $7::bigint, $8, $9,
                   $10::jsonb)
)sql";

// Must write something, or COMMIT has nothing to wait for.
constexpr const char* kCommitDurably = R"sql(
  UPDATE pawl.processed_kafka_offsets r SET updated_at = clock_timestamp()
   WHERE r.consumer_id = $1::integer AND r.topic = $2 AND r.partition = $3::integer
     AND r.owner_epoch = $4::bigint
)sql";

// After pawl.acquire in its transaction: that has locked the row, so both belong together.
constexpr const char* kSuspectsLeft = R"sql(
  SELECT suspects_left
    FROM pawl.processed_kafka_offsets
   WHERE consumer_id = $1::integer AND topic = $2 AND partition = $3::integer
)sql";

constexpr const char* kRecordAttempt = R"sql(
  UPDATE pawl.processed_kafka_offsets r
     SET attempts = CASE WHEN r.attempts_offset = $5::bigint THEN r.attempts ELSE 0 END + 1,
         attempts_offset = $5::bigint
   WHERE r.consumer_id = $1::integer AND r.topic = $2 AND r.partition = $3::integer
     AND r.owner_epoch = $4::bigint
   RETURNING r.attempts
)sql";

constexpr const char* kStoreTopicId = R"sql(
  UPDATE pawl.processed_kafka_offsets
     SET topic_id = $5
   WHERE consumer_id = $1::integer AND topic = $2 AND partition = $3::integer
     AND owner_epoch = $4::bigint
)sql";

// Several rows in one transaction, but none is waited for: nobody can be in a deadlock with it.
constexpr const char* kNameSession = R"sql(
  WITH held AS MATERIALIZED (
    SELECT r.topic, r.partition, r.owner_epoch
      FROM pawl.processed_kafka_offsets r
      JOIN unnest($2::text[], $3::integer[], $4::bigint[]) AS h (topic, partition, epoch)
        ON r.topic = h.topic AND r.partition = h.partition AND r.owner_epoch = h.epoch
     WHERE r.consumer_id = $1::integer AND NOT r.released
       FOR NO KEY UPDATE OF r SKIP LOCKED)
  UPDATE pawl.processed_kafka_offsets r
     SET owner_pid = $5::integer, owner_backend_start = $6::timestamptz
    FROM held h
   WHERE r.consumer_id = $1::integer AND r.topic = h.topic AND r.partition = h.partition
     AND r.owner_epoch = h.owner_epoch
  RETURNING r.topic, r.partition
)sql";

constexpr const char* kOwnedBy = R"sql(
  SELECT topic, partition, owner_epoch, last_processed_offset, state
    FROM pawl.processed_kafka_offsets
   WHERE consumer_id = $1::integer AND owner = $2
)sql";

constexpr const char* kOtherHolder = R"sql(
  SELECT owner_pid, {}, owner
    FROM pawl.processed_kafka_offsets
   WHERE consumer_id = $1::integer AND topic = $2 AND partition = $3::integer
     AND owner <> $4 AND NOT released AND owner_pid IS NOT NULL
)sql";

constexpr const char* kFindTopic = R"sql(
  SELECT source_id, partitions FROM pawl.consumer_topics WHERE consumer_id = $1::integer AND
         topic = $2
)sql";

// Two processes may meet a topic for the first time at once: the second waits here for the first
// one's commit and then inserts nothing.
constexpr const char* kInsertTopic = R"sql(
  INSERT INTO pawl.consumer_topics (consumer_id, topic, partitions, start_policy)
  VALUES ($1::integer, $2, $3::integer, $4)
  ON CONFLICT (consumer_id, topic) DO NOTHING
)sql";

// Inserts rows only in the transaction that inserted the topic (same xmin), so that the second
// process' own resolution is dropped whole.
constexpr const char* kInsertRows = R"sql(
  WITH resolved AS (
    SELECT p.position - 1 AS partition, p.stored
      FROM unnest($3::bigint[]) WITH ORDINALITY AS p (stored, position)
     WHERE EXISTS (SELECT FROM pawl.consumer_topics t
                    WHERE t.consumer_id = $1::integer AND t.topic = $2
                      AND t.xmin::text = (pg_current_xact_id()::text::numeric % 4294967296)::text)
  ), inserted AS (
    INSERT INTO pawl.processed_kafka_offsets (consumer_id, topic, partition,
           last_processed_offset, base_offset, topic_id)
    SELECT $1::integer, $2, partition, stored, stored + 1, $5 FROM resolved
    ON CONFLICT DO NOTHING
    RETURNING partition, base_offset)
  INSERT INTO pawl.offset_history (consumer_id, topic, partition, action, to_offset, reason)
   SELECT $1::integer, $2, partition, 'first assignment', base_offset, $4 FROM inserted
)sql";

constexpr const char* kAddPartition = R"sql(
  INSERT INTO pawl.processed_kafka_offsets (consumer_id, topic, partition,
        last_processed_offset, base_offset)
  VALUES ($1::integer, $2, $3::integer, -1, 0)
  ON CONFLICT DO NOTHING
)sql";

postgres::Statement statement(const char* name, std::string_view text, const std::string& schema) {
  return {fmt::format("pawl_{}", name), in_schema(text, schema)};
}

std::map<std::pair<Outcome, bool>, postgres::Statement> advance_statements(
    const std::string& schema) {
  std::map<std::pair<Outcome, bool>, postgres::Statement> statements;
  for (const auto outcome :
       {Outcome::kApplied, Outcome::kDuplicate, Outcome::kSkipped, Outcome::kUnchecked,
        Outcome::kDead, Outcome::kParked, Outcome::kEndOfLog}) {
    for (const bool halted : {false, true}) {
      auto name = fmt::format("pawl_advance_{}{}", to_string(outcome), halted ? "_halted" : "");
      const bool claimed = outcome != Outcome::kEndOfLog;
      postgres::Statement statement{
          name, advance_text(schema, {.outcome = outcome, .claimed = claimed, .halted = halted})};
      statement.releasing = std::make_shared<const postgres::Statement>(postgres::Statement{
          name + "_releasing",
          advance_text(
              schema,
              {.outcome = outcome, .claimed = claimed, .halted = halted, .releases = true})});
      statements.emplace(std::pair(outcome, halted), std::move(statement));
    }
  }
  return statements;
}

void fill(postgres::Parameters& parameters, ConsumerId consumer, const TopicPartition& partition,
          const Advance& advance) {
  add_partition(parameters, consumer, partition);
  parameters.add_integer(static_cast<std::int64_t>(advance.epoch));
  parameters.add_integer(advance.from.last());
  parameters.add_integer(advance.to.last());
  parameters.add_text_or_null(advance.transaction);
  parameters.add_optional_integer(advance.leader_epoch);
  add_timestamp(parameters, advance.timestamp);
}

Acquired read_acquired(const PGresult* rows) {
  Acquired acquired;
  acquired.epoch = OwnerEpoch{integer(rows, 0, 0)};
  acquired.stored = Position::behind(integer(rows, 0, 1));
  acquired.state = parse_state(text(rows, 0, 2));
  acquired.operator_reason = text(rows, 0, 3);
  acquired.halt = read_halt(rows, 0, 11);
  acquired.topic_id = text(rows, 0, 4);
  if (const auto epoch = optional_integer(rows, 0, 5)) {
    acquired.leader_epoch = static_cast<std::int32_t>(*epoch);
  }
  acquired.released = boolean(rows, 0, 6);
  acquired.previous_owner = text(rows, 0, 7);
  if (const auto pid = optional_integer(rows, 0, 8)) {
    acquired.previous_backend =
        postgres::Backend{static_cast<std::int32_t>(*pid), text(rows, 0, 9)};
  }
  acquired.fence = {FenceId{static_cast<std::int32_t>(integer(rows, 0, 10))}, acquired.epoch,
                    acquired.stored};
  return acquired;
}

}  // namespace

OffsetRegister::OffsetRegister(const std::string& schema, ConsumerId consumer)
    : consumer_(consumer),
      ahead_(schema, consumer),
      first_fetches_(schema, consumer),
      marks_(schema, consumer),
      acquire_(statement(
          "acquire",
          fmt::format(fmt::runtime(kAcquire), postgres::exact_time("previous_backend_start")),
          schema)),
      advance_(advance_statements(schema)),
      pipelined_applied_{"pawl_pipelined_advance_applied",
                         advance_text(schema, {.outcome = Outcome::kApplied, .claimed = false})},
      pipelined_duplicate_{
          "pawl_pipelined_advance_duplicate",
          advance_text(schema, {.outcome = Outcome::kDuplicate, .claimed = false})},
      commit_durably_(statement("commit_durably", kCommitDurably, schema)),
      advance_batch_{"pawl_advance_batch", advance_batch_text(schema)},
      release_(statement("release", kRelease, schema)),
      store_suspects_left_(statement("store_suspects_left", kStoreSuspectsLeft, schema)),
      halt_(statement("halt", kHalt, schema)),
      suspects_left_(statement("suspects_left", kSuspectsLeft, schema)),
      record_attempt_(statement("record_attempt", kRecordAttempt, schema)),
      store_topic_id_(statement("store_topic_id", kStoreTopicId, schema)),
      name_session_(statement("name_session", kNameSession, schema)),
      owned_by_(statement("owned_by", kOwnedBy, schema)),
      other_holder_(statement(
          "other_holder",
          fmt::format(fmt::runtime(kOtherHolder), postgres::exact_time("owner_backend_start")),
          schema)),
      find_topic_(statement("find_topic", kFindTopic, schema)),
      insert_topic_(statement("insert_topic", kInsertTopic, schema)),
      insert_rows_(statement("insert_rows", kInsertRows, schema)),
      add_partition_(statement("add_partition", kAddPartition, schema)) {}

std::optional<Acquired> OffsetRegister::acquire(postgres::Session& session,
                                                const TopicPartition& partition,
                                                const std::string& owner) const {
  auto parameters = partition_parameters(consumer_, partition);
  parameters.add_text(owner);
  add_backend(parameters, session);
  const auto results = postgres::run_transaction(
      session, {first_fetches_.known(partition),
                {&acquire_, std::move(parameters)},
                {&suspects_left_, partition_parameters(consumer_, partition)},
                ahead_.forget_passed(partition),
                ahead_.known(partition)});
  const auto* rows = results[1].get();
  if (PQntuples(rows) == 0)
    return std::nullopt;
  auto acquired = read_acquired(rows);
  acquired.first_fetch = FirstFetches::read_known(results.front().get());
  acquired.suspects_left = acquired.released && boolean(results[2].get(), 0, 0);
  acquired.ahead = MessagesAhead::read_known(results.back().get());
  return acquired;
}

void OffsetRegister::advance(postgres::Request& request, const TopicPartition& partition,
                             const Advance& step) const {
  fill(request.to(advance_.at({step.outcome, step.halted})), consumer_, partition, step);
}

void OffsetRegister::advance_pipelined(postgres::Request& request, const TopicPartition& partition,
                                       const Advance& step) const {
  fill(request.to(step.outcome == Outcome::kApplied ? pipelined_applied_ : pipelined_duplicate_),
       consumer_, partition, step);
}

void OffsetRegister::advance_batch(postgres::Request& request, const TopicPartition& partition,
                                   const Advance& step, const BatchCounts& counts) const {
  auto& parameters = request.to(advance_batch_);
  fill(parameters, consumer_, partition, step);
  parameters.add_integer(counts.applied);
  parameters.add_integer(counts.duplicates);
  parameters.add_integer(counts.unchecked);
}

void OffsetRegister::advance_alone(postgres::Session& session, const TopicPartition& partition,
                                   const Advance& step) const {
  postgres::Request request;
  advance(request, partition, step);
  postgres::run_transaction(session, {std::move(request)});
}

bool OffsetRegister::commit_durably(postgres::Session& session, const TopicPartition& partition,
                                    OwnerEpoch epoch) const {
  auto parameters = partition_parameters(consumer_, partition);
  parameters.add_integer(static_cast<std::int64_t>(epoch));
  const auto results =
      postgres::run_transaction(session, {{&commit_durably_, std::move(parameters)}});
  return postgres::affected_rows(results.front().get()) == 1;
}

bool OffsetRegister::release(postgres::Session& session, const TopicPartition& partition,
                             OwnerEpoch epoch, bool suspects_left) const {
  auto parameters = partition_parameters(consumer_, partition);
  parameters.add_integer(static_cast<std::int64_t>(epoch));
  auto left = parameters;
  left.add_text(suspects_left ? "true" : "false");
  const auto results = postgres::run_transaction(
      session, {{&release_, std::move(parameters)}, {&store_suspects_left_, std::move(left)}});
  return boolean(results.front().get(), 0, 0);
}

bool OffsetRegister::halt(postgres::Session& session, const TopicPartition& partition,
                          OwnerEpoch epoch, const Halt& halt) const {
  auto parameters = partition_parameters(consumer_, partition);
  parameters.add_integer(static_cast<std::int64_t>(epoch));
  add_halt(parameters, halt);
  const auto results = postgres::run_transaction(session, {{&halt_, std::move(parameters)}});
  return boolean(results.front().get(), 0, 0);
}

std::optional<std::uint32_t> OffsetRegister::record_attempt(postgres::Session& session,
                                                            const TopicPartition& partition,
                                                            OwnerEpoch epoch,
                                                            std::int64_t offset) const {
  auto parameters = partition_parameters(consumer_, partition);
  parameters.add_integer(static_cast<std::int64_t>(epoch));
  parameters.add_integer(offset);
  const auto results =
      postgres::run_transaction(session, {{&record_attempt_, std::move(parameters)}});
  if (PQntuples(results.front().get()) == 0)
    return std::nullopt;
  return static_cast<std::uint32_t>(integer(results.front().get(), 0, 0));
}

bool OffsetRegister::store_topic_id(postgres::Session& session, const TopicPartition& partition,
                                    OwnerEpoch epoch, const std::string& topic_id) const {
  auto parameters = partition_parameters(consumer_, partition);
  parameters.add_integer(static_cast<std::int64_t>(epoch));
  parameters.add_text(topic_id);
  const auto results =
      postgres::run_transaction(session, {{&store_topic_id_, std::move(parameters)}});
  return postgres::affected_rows(results.front().get()) == 1;
}

std::set<TopicPartition> OffsetRegister::name_session(
    postgres::Session& session, const std::map<TopicPartition, OwnerEpoch>& held) const {
  std::set<TopicPartition> named;
  if (held.empty() || !session.backend()) {
    for (const auto& [partition, epoch] : held)
      named.insert(partition);
    return named;
  }
  auto parameters = held_parameters(consumer_, held);
  add_backend(parameters, session);
  // A crash of the server ends the session as well.
  const auto results =
      postgres::run_relaxed_transaction(session, {{&name_session_, std::move(parameters)}});
  const auto* rows = results.front().get();
  for (int row = 0; row < PQntuples(rows); ++row)
    named.insert({text(rows, row, 0), static_cast<std::int32_t>(integer(rows, row, 1))});
  return named;
}

std::map<TopicPartition, Watched> OffsetRegister::owned_by(postgres::Session& session,
                                                           const std::string& owner) const {
  postgres::Parameters parameters;
  parameters.add_integer(static_cast<std::int64_t>(consumer_));
  parameters.add_text(owner);
  const auto result = session.exec(owned_by_, parameters);
  const auto* rows = result.get();
  std::map<TopicPartition, Watched> watched;
  for (int row = 0; row < PQntuples(rows); ++row) {
    watched.emplace(
        TopicPartition{text(rows, row, 0), static_cast<std::int32_t>(integer(rows, row, 1))},
        Watched{OwnerEpoch{integer(rows, row, 2)}, Position::behind(integer(rows, row, 3)),
                parse_state(text(rows, row, 4))});
  }
  return watched;
}

std::optional<Holder> OffsetRegister::other_holder(postgres::Session& session,
                                                   const TopicPartition& partition,
                                                   const std::string& owner) const {
  auto parameters = partition_parameters(consumer_, partition);
  parameters.add_text(owner);
  const auto result = session.exec(other_holder_, parameters);
  if (PQntuples(result.get()) == 0)
    return std::nullopt;
  return Holder{text(result.get(), 0, 2),
                {static_cast<std::int32_t>(integer(result.get(), 0, 0)), text(result.get(), 0, 1)}};
}

std::optional<KnownTopic> OffsetRegister::find_topic(postgres::Session& session,
                                                     const std::string& topic) const {
  postgres::Parameters parameters;
  parameters.add_integer(static_cast<std::int64_t>(consumer_));
  parameters.add_text(topic);
  const auto result = session.exec(find_topic_, parameters);
  if (PQntuples(result.get()) == 0)
    return std::nullopt;
  return KnownTopic{SourceId{static_cast<std::int32_t>(integer(result.get(), 0, 0))},
                    static_cast<std::int32_t>(integer(result.get(), 0, 1))};
}

MetTopic OffsetRegister::first_contact(postgres::Session& session,
                                       const FirstContact& contact) const {
  postgres::Parameters topic;
  topic.add_integer(static_cast<std::int64_t>(consumer_));
  topic.add_text(contact.topic);
  topic.add_integer(static_cast<std::int64_t>(contact.starts.size()));
  topic.add_text(contact.start_policy);

  postgres::Parameters rows;
  rows.add_integer(static_cast<std::int64_t>(consumer_));
  rows.add_text(contact.topic);
  rows.add_text(fmt::format(
      "{{{}}}", fmt::join(contact.starts | std::views::transform(&Position::last), ",")));
  rows.add_text(contact.reason.empty() ? contact.start_policy : contact.reason);
  rows.add_text_or_null(contact.topic_id);

  const auto results = postgres::run_transaction(
      session, {{&insert_topic_, std::move(topic)}, {&insert_rows_, std::move(rows)}});
  const auto source = find_topic(session, contact.topic);
  if (!source)
    throw std::logic_error("a topic is missing right after its first assignment was stored");
  return {source->id, postgres::affected_rows(results.front().get()) == 1};
}

void OffsetRegister::add_partition(postgres::Session& session,
                                   const TopicPartition& partition) const {
  auto parameters = partition_parameters(consumer_, partition);
  postgres::run_transaction(session, {{&add_partition_, std::move(parameters)}});
}

}  // namespace pawl::ledger
