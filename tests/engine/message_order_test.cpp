// What stands between the fetch and the offset: a message that was lost or overtaken on its way
// from Kafka's client to the frame cannot be passed over, whoever lost it.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <future>
#include <pqxx/connection>
#include <pqxx/transaction>

#include "config/load.hpp"
#include "engine/context.hpp"
#include "engine/message_processor.hpp"
#include "kafka/fetch_one.hpp"
#include "ledger/rows.hpp"
#include "message/record_digest.hpp"
#include "payments_world.hpp"
#include "prelude.hpp"

namespace {

pawl::Options options_of(const PaymentsWorld& world) {
  pawl::config::LoadRequest request;
  request.path = "test.toml";
  request.text = world.config();
  return pawl::config::load(request);
}

/// Does something at each step of a message.
class AtSteps final : public pawl::Observer {
 public:
  std::map<pawl::Step, std::function<void()>> actions;

  void on_event(const pawl::Event& event) noexcept override {
    const auto found = actions.find(event.step);
    if (found != actions.end())
      std::exchange(found->second, [] {})();
  }
  [[nodiscard]] bool watches_every_step() const noexcept override { return true; }
};

/// The engine's way of one message without the engine around it, so that a test chooses what is
/// handed over and which predecessor it claims.
class ByHand {
 public:
  explicit ByHand(const std::string& postgres_options = "", const std::string& handler = "")
      : world(world_with(postgres_options, handler)),
        options_(options_of(world)),
        router_(options_, registry_),
        steps_(std::make_shared<AtSteps>()),
        observers_({steps_}),
        client_(options_.kafka, {}),
        session_(pawl::engine::session_settings(options_)),
        context_(make_context()),
        processor_(context_->frame),
        partition_{world.topic(), 0} {
    for (int i = 0; i < 3; ++i)
      world.produce_one(fmt::format("message-{}", i), 10 + i, 0);
    for (int i = 0; i < 3; ++i) {
      records_.push_back(pawl::kafka::fetch_one(client_, partition_, i, 20s).value());
    }
    source_ = context_->offsets
                  .first_contact(session_, {world.topic(), "earliest", {pawl::ledger::Position()}})
                  .source;
    acquire();
  }

  void acquire() {
    const auto acquired = context_->offsets.acquire(session_, partition_, "by hand");
    epoch_ = acquired->epoch;
    fence_ = acquired->fence;
    ahead_ = acquired->ahead;
  }
  /// Once, when a message comes there next.
  void at(pawl::Step step, std::function<void()> action) {
    steps_->actions[step] = std::move(action);
  }
  /// What was known above the stored offset at the last acquire: "1 applied, 2 tried 3 times".
  std::string ahead() const {
    std::vector<std::string> texts;
    for (const auto& known : ahead_) {
      texts.push_back(known.outcome
                          ? fmt::format("{} {}", known.record.offset, to_string(*known.outcome))
                          : fmt::format("{} tried {} times", known.record.offset, known.attempts));
    }
    return fmt::format("{}", fmt::join(texts, ", "));
  }
  /// Finishes it ahead of the stored offset.
  void finish(std::size_t offset) {
    const pawl::engine::FinishStep last(context_->offsets.ahead(), fence_, record_ahead(offset));
    pawl::engine::Subject subject;
    processor_.process(session_, {view(offset), source_, records_.at(offset).leader_epoch(), last},
                       subject);
  }
  std::string refusal_to_finish(std::size_t offset) {
    return refusal_of([&] { finish(offset); });
  }
  bool count_attempt(std::size_t offset) {
    return context_->offsets.ahead()
        .count_attempt(session_, fence_, record_ahead(offset))
        .has_value();
  }
  /// Moves the stored offset over so many messages; the SQLSTATE with which that was refused.
  std::string refusal_to_pass(std::int64_t from, std::int64_t to, std::int64_t messages) {
    pawl::ledger::Passing passing;
    passing.fence = fence_;
    passing.from = pawl::ledger::Position::behind(from);
    passing.to = pawl::ledger::Position::behind(to);
    passing.messages = messages;
    return refusal_of([&] { context_->offsets.ahead().pass(session_, partition_, passing, true); });
  }
  pawl::ledger::OwnerEpoch epoch() const { return epoch_; }
  void use_epoch(pawl::ledger::OwnerEpoch epoch) { epoch_ = epoch; }

  void apply(std::int64_t previous, std::size_t offset) { process(previous, offset, std::nullopt); }
  /// Applies `offset`, and lets the claim of the one behind it travel along.
  void apply_and_start_next(std::int64_t previous, std::size_t offset) {
    process(previous, offset, pawl::engine::Upcoming{view(offset + 1), source_});
  }
  /// A tombstone without headers, as Kafka's client would hand it over with its key at this place.
  pawl::Message tombstone(std::int64_t offset, std::string_view key) const {
    pawl::MessageFields fields;
    fields.topic = partition_.topic;
    fields.topic_id = "a topic id";
    fields.offset = offset;
    fields.key = key;
    return pawl::Message(fields);
  }
  void process(std::int64_t previous, const pawl::Message& message,
               const std::optional<pawl::Message>& next = std::nullopt) {
    pawl::ledger::Advance advance;
    advance.epoch = epoch_;
    advance.from = pawl::ledger::Position::behind(previous);
    advance.to = pawl::ledger::Position::behind(message.offset());
    const pawl::engine::AdvanceStep last(context_->offsets, partition_, advance);
    pawl::engine::Subject subject;
    processor_.process(session_, {message, source_, std::nullopt, last}, subject,
                       next ? std::optional(pawl::engine::Upcoming{*next, source_}) : std::nullopt);
  }
  void settle() { session_.settle(); }
  void use_session_otherwise() { REQUIRE_FALSE(session_.is_read_only()); }
  bool in_transaction() const { return session_.in_transaction(); }
  /// Applies it; the SQLSTATE with which that was refused, "" when it was not.
  std::string refusal(std::int64_t previous, std::size_t offset, bool start_next = false) {
    return refusal_of([&] {
      if (start_next) {
        apply_and_start_next(previous, offset);
      } else {
        apply(previous, offset);
      }
    });
  }
  static std::string refusal_of(const std::function<void()>& what) {
    try {
      what();
    } catch (const pawl::postgres::Error& error) {
      return error.sqlstate();
    }
    return "";
  }

  /// As another process would, behind our back.
  void fence() { REQUIRE(refusal_to_fence() == ""); }
  std::string refusal_to_fence() {
    auto settings = pawl::engine::session_settings(options_);
    settings.lock_timeout = 100ms;
    pawl::postgres::Session other(settings);
    return refusal_of([&] { (void)context_->offsets.acquire(other, partition_, "another"); });
  }

  void require_stored(std::int64_t offset) { REQUIRE(world.stored(0) == offset); }

  /// The register and everything that stands or falls with it.
  void require_applied_up_to(std::int64_t offset) {
    REQUIRE(world.stored(0) == offset);
    for (const auto* table : {"ledger", "pawl.idempotency_keys"}) {
      REQUIRE(world.number(fmt::format("SELECT count(*) FROM {}", table)) == offset + 1);
    }
    REQUIRE(world.number("SELECT sum(entries) FROM accounts") == offset + 1);
  }

  PaymentsWorld world;

 private:
  static PaymentsWorld world_with(const std::string& postgres_options, const std::string& handler) {
    PaymentsWorld world(1);
    if (!handler.empty())
      world.use_handler(handler);
    world.set_postgres_options(postgres_options);
    return world;
  }

  pawl::Message view(std::size_t offset) const {
    return records_.at(offset).view(partition_.topic, topic_id_);
  }

  void process(std::int64_t previous, std::size_t offset,
               std::optional<pawl::engine::Upcoming> next) {
    pawl::ledger::Advance advance;
    advance.epoch = epoch_;
    advance.from = pawl::ledger::Position::behind(previous);
    advance.to = pawl::ledger::Position::behind(records_.at(offset).offset());
    const pawl::engine::AdvanceStep last(context_->offsets, partition_, advance);
    const auto message = view(offset);
    pawl::engine::Subject subject;
    processor_.process(session_, {message, source_, records_.at(offset).leader_epoch(), last},
                       subject, next);
  }

  pawl::ledger::RecordAhead record_ahead(std::size_t offset) const {
    return {records_.at(offset).offset(), records_.at(offset).leader_epoch(),
            pawl::message::record_digest(view(offset))};
  }

  std::unique_ptr<pawl::engine::Context> make_context() {
    auto registration =
        pawl::ledger::register_consumer(session_, options_.postgres.schema, options_.kafka.cluster,
                                        options_.kafka.group, client_.cluster_id(20s));
    const auto consumer = registration.consumer;
    return std::unique_ptr<pawl::engine::Context>(new pawl::engine::Context{
        options_, registry_, router_, observers_, client_, database_reachable_, kafka_reachable_,
        std::move(registration), pawl::ledger::OffsetRegister(options_.postgres.schema, consumer),
        pawl::ledger::Suspects(options_.postgres.schema, consumer),
        pawl::engine::frame_context(options_, router_, observers_, consumer, "by hand"),
        pawl::engine::TopicDirectory(client_, router_.entries()), board_, "by hand"});
  }

  pawl::Options options_;
  pawl::Registry registry_;
  pawl::handlers::Router router_;
  std::shared_ptr<AtSteps> steps_;
  pawl::engine::Observers observers_;
  pawl::engine::Reachability database_reachable_{observers_, pawl::Step::kDatabaseUnreachable,
                                                 pawl::Step::kDatabaseReachable};
  pawl::engine::Reachability kafka_reachable_{observers_, pawl::Step::kKafkaUnreachable,
                                              pawl::Step::kKafkaReachable};
  pawl::kafka::Client client_;
  pawl::postgres::Session session_;
  pawl::engine::StatusBoard board_;
  std::unique_ptr<pawl::engine::Context> context_;
  pawl::engine::MessageProcessor processor_;
  pawl::TopicPartition partition_;
  std::string topic_id_;
  std::vector<kafka::Record> records_;
  pawl::ledger::SourceId source_{};
  pawl::ledger::OwnerEpoch epoch_{};
  pawl::ledger::Fence fence_;
  std::vector<pawl::ledger::KnownAhead> ahead_;
};

/// Isolation levels, as lines of a [[handler]] of payments.
const std::vector<std::string> kIsolations{"read committed", "repeatable read", "serializable"};

std::string handler_in(const std::string& isolation) {
  return fmt::format("isolation = \"{}\"\n{}", isolation, pawl::test::kFlightSql);
}

constexpr const char* kOutOfOrder = "PW002";
constexpr const char* kFenced = "PW001";

/// With another payload, beside exactly one key that is stored.
constexpr const char* kTakeKeyOfMessage2 =
    "INSERT INTO pawl.idempotency_keys (scope_id, key, payload_hash, source_id, partition,"
    " kafka_offset) SELECT scope_id, 'message-2', 0, source_id, 0, 7 FROM pawl.idempotency_keys";

}  // namespace

TEST_CASE("a message after a lost one is refused, and nothing of it is stored") {
  ByHand frame;
  frame.apply(-1, 0);
  REQUIRE(frame.refusal(1, 2) == kOutOfOrder);
  frame.require_applied_up_to(0);
  // In order, the same messages pass: the refusal left nothing behind.
  frame.apply(0, 1);
  frame.apply(1, 2);
  frame.require_applied_up_to(2);
}

TEST_CASE("a message that overtook another is refused, and one that comes again is too") {
  ByHand frame;
  REQUIRE(frame.refusal(0, 1) == kOutOfOrder);
  frame.require_applied_up_to(-1);
  frame.apply(-1, 0);
  frame.apply(0, 1);
  // A duplicate by its key, but it must not move the register back either.
  REQUIRE(frame.refusal(-1, 0) == kOutOfOrder);
  REQUIRE(frame.refusal(0, 1) == kOutOfOrder);
  frame.require_applied_up_to(1);
  // Not even when it claims the right predecessor.
  REQUIRE(frame.refusal(1, 0) == kOutOfOrder);
  frame.require_applied_up_to(1);
  frame.apply(1, 2);
  frame.require_applied_up_to(2);
}

TEST_CASE("a message of an older generation is refused") {
  ByHand frame;
  frame.apply(-1, 0);
  const auto older = frame.epoch();
  frame.acquire();
  const auto newer = frame.epoch();
  frame.use_epoch(older);
  REQUIRE(frame.refusal(0, 1) == kFenced);
  frame.require_applied_up_to(0);
  frame.use_epoch(newer);
  frame.apply(0, 1);
  frame.require_applied_up_to(1);
}

// A claim sent along with the COMMIT before it: each of the two may fail, stall or be given up
// alone.
TEST_CASE("the claim of the next message travels behind COMMIT, and is that message's own") {
  ByHand frame;
  frame.apply_and_start_next(-1, 0);
  REQUIRE(frame.in_transaction());
  frame.require_applied_up_to(0);

  SECTION("the next message goes on from it") {
    frame.apply_and_start_next(0, 1);
    frame.require_applied_up_to(1);
    frame.apply(1, 2);
    REQUIRE_FALSE(frame.in_transaction());
    frame.require_applied_up_to(2);
  }
  SECTION("it is given up") {
    frame.settle();
    REQUIRE_FALSE(frame.in_transaction());
    frame.apply(0, 1);
    frame.require_applied_up_to(1);
  }
  SECTION("the session is used for something else") {
    frame.use_session_otherwise();
    REQUIRE_FALSE(frame.in_transaction());
    frame.apply_and_start_next(0, 1);
    frame.require_applied_up_to(1);
    frame.apply(1, 2);
    frame.require_applied_up_to(2);
  }
  SECTION("another message comes instead") {
    REQUIRE(frame.refusal(0, 0) == kOutOfOrder);
    REQUIRE_FALSE(frame.in_transaction());
    frame.apply(0, 1);
    frame.require_applied_up_to(1);
  }
  SECTION("the next message turns out to be a duplicate") {
    frame.settle();
    frame.world.execute(kTakeKeyOfMessage2);
    frame.apply_and_start_next(0, 1);
    // The payload is another one, which the frame of that message says, not the one before.
    frame.require_stored(1);
    REQUIRE_THROWS_WITH(frame.apply(1, 2), ContainsSubstring("another payload"));
    frame.require_stored(1);
    REQUIRE_FALSE(frame.in_transaction());
  }
  SECTION("somebody else takes the partition meanwhile") {
    const auto older = frame.epoch();
    frame.fence();
    REQUIRE(frame.epoch() == older);
    REQUIRE(frame.refusal(0, 1) == kFenced);
    REQUIRE_FALSE(frame.in_transaction());
    frame.require_applied_up_to(0);
  }
}

// Two records of a tombstone without headers differ in nothing but where their keys lie.
TEST_CASE("what was looked at ahead is looked at anew when its claim was given up") {
  ByHand frame("", R"toml(key = "{topic_id}:{partition}:{offset}"
sql = "INSERT INTO ledger SELECT {key}, 'acc-0', 1"
)toml");
  const std::string gone = "a key whose record was freed";
  const std::string there = "the key";
  frame.process(-1, frame.tombstone(0, "before"), frame.tombstone(1, gone));
  REQUIRE(frame.in_transaction());
  SECTION("the session was settled") {
    frame.settle();
  }
  SECTION("the session was used for something else") {
    frame.use_session_otherwise();
  }
  frame.process(0, frame.tombstone(1, there));
  frame.require_stored(1);
  CHECK(frame.world.number("SELECT count(*) FROM ledger WHERE event_id = 'the key'") == 1);
  CHECK(frame.world.number("SELECT count(*) FROM ledger") == 2);
}

TEST_CASE("a COMMIT that is refused takes the claim behind it along") {
  ByHand frame;
  frame.apply(-1, 0);
  SECTION("the advance is refused") {
    REQUIRE(frame.refusal(-1, 1, true) == kOutOfOrder);
  }
  SECTION("the transaction fails at COMMIT") {
    frame.world.execute(
        "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS"
        " $$ BEGIN RAISE unique_violation; END $$");
    frame.world.execute(
        "CREATE CONSTRAINT TRIGGER at_commit AFTER INSERT ON ledger"
        " DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION refuse()");
    REQUIRE(frame.refusal(0, 1, true) == "23505");
    frame.world.execute("DROP TRIGGER at_commit ON ledger");
  }
  REQUIRE_FALSE(frame.in_transaction());
  frame.require_applied_up_to(0);
  frame.apply(0, 1);
  frame.apply(1, 2);
  frame.require_applied_up_to(2);
}

TEST_CASE("a claim that cannot be had behind COMMIT leaves the message before it committed") {
  ByHand frame("lock_timeout = \"100ms\"");
  frame.apply(-1, 0);
  {
    pqxx::connection other(frame.world.url());
    pqxx::work holder(other);
    holder.exec(kTakeKeyOfMessage2);
    frame.apply_and_start_next(0, 1);
    frame.require_applied_up_to(1);
    REQUIRE(frame.refusal(1, 2) == "55P03");
    REQUIRE_FALSE(frame.in_transaction());
    frame.require_applied_up_to(1);
  }
  frame.apply(1, 2);
  frame.require_applied_up_to(2);
}

// The compare has no row to raise in when there is none; so an owned row must stay.
TEST_CASE("the register's row of a partition that is owned cannot be removed") {
  ByHand frame;
  frame.apply(-1, 0);
  REQUIRE_THROWS_WITH(frame.world.execute("DELETE FROM pawl.processed_kafka_offsets"),
                      ContainsSubstring("a process owns rows"));
  REQUIRE_THROWS_WITH(frame.world.execute("TRUNCATE pawl.processed_kafka_offsets"),
                      ContainsSubstring("a process owns rows"));
  frame.apply(0, 1);
  frame.require_applied_up_to(1);

  // Whoever insists is not left in the dark: the message's effect is there once, and it says so.
  frame.world.execute("UPDATE pawl.processed_kafka_offsets SET released = true");
  frame.world.execute("DELETE FROM pawl.processed_kafka_offsets");
  REQUIRE(frame.refusal(1, 2) == "PW004");
  REQUIRE(frame.world.number("SELECT count(*) FROM ledger") == 3);
  REQUIRE(frame.world.number("SELECT count(*) FROM pawl.idempotency_keys") == 3);
}

// Ahead of the stored offset:

TEST_CASE("messages are finished in any order, and the stored offset passes those that are") {
  ByHand frame;
  frame.finish(2);
  frame.finish(0);
  frame.require_stored(-1);
  CHECK(frame.refusal_to_pass(-1, 1, 2) == kOutOfOrder);
  CHECK(frame.refusal_to_pass(-1, 2, 3) == kOutOfOrder);
  CHECK(frame.refusal_to_pass(0, 2, 1) == kOutOfOrder);
  frame.require_stored(-1);
  CHECK(frame.refusal_to_pass(-1, 0, 1) == "");
  frame.require_stored(0);
  frame.acquire();
  CHECK(frame.ahead() == "2 applied");
  REQUIRE(frame.count_attempt(1));
  REQUIRE(frame.count_attempt(1));
  frame.acquire();
  CHECK(frame.ahead() == "1 tried 2 times, 2 applied");
  frame.finish(1);
  CHECK(frame.refusal_to_pass(0, 2, 2) == "");
  frame.require_applied_up_to(2);
  frame.acquire();
  CHECK(frame.ahead() == "");
  CHECK(frame.world.number("SELECT applied_count FROM pawl.processed_kafka_offsets") == 3);
  CHECK(frame.world.number("SELECT count(*) FROM pawl.out_of_order_completions") == 0);
}

TEST_CASE("what is finished already is refused, and what a plain advance has passed is forgotten") {
  ByHand frame("", R"toml(key = "{header:nothing}"
missing_key = "process"
sql = "INSERT INTO ledger SELECT gen_random_uuid()::text, 'acc-0', 1"
)toml");
  frame.finish(1);
  CHECK(frame.refusal_to_finish(1) == kOutOfOrder);
  CHECK(frame.world.number("SELECT count(*) FROM ledger") == 1);
  frame.apply(-1, 0);
  frame.apply(0, 2);
  frame.acquire();
  CHECK(frame.ahead() == "");
  CHECK(frame.world.number("SELECT count(*) FROM pawl.out_of_order_completions") == 0);
}

TEST_CASE("who has lost the partition finishes nothing, counts nothing and passes nothing") {
  const auto isolation = GENERATE(from_range(kIsolations));
  CAPTURE(isolation);
  ByHand frame("", handler_in(isolation));
  frame.finish(1);
  frame.fence();
  CHECK(frame.refusal_to_finish(0) == kFenced);
  CHECK(frame.refusal_to_pass(-1, 0, 0) == kFenced);
  CHECK_FALSE(frame.count_attempt(0));
  CHECK(frame.world.number("SELECT count(*) FROM ledger") == 1);
  CHECK(frame.world.number("SELECT count(*) FROM pawl.out_of_order_completions") == 1);
  frame.require_stored(-1);
}

// As where the database lost commits behind a pooler that kept the connection. Fails where the
// epoch alone is compared, and where a row that is missing makes an INSERT of nothing.
TEST_CASE("nothing is finished ahead of an offset that went back, nor where a row is missing") {
  ByHand frame;
  frame.apply(-1, 0);
  frame.acquire();
  frame.world.execute("UPDATE pawl.processed_kafka_offsets SET last_processed_offset = -1");
  CHECK(frame.refusal_to_finish(1) == "PW002");
  frame.acquire();
  frame.finish(1);
  frame.world.execute("DELETE FROM pawl.partition_fences");
  CHECK(frame.refusal_to_finish(2) == kFenced);
  CHECK(frame.world.number("SELECT count(*) FROM ledger") == 2);
}

// Without a pooler a session ends with its database, so its claims need not compare the two.
TEST_CASE("through a pooler a claim under a number that is not its scope's is refused") {
  ByHand frame("pooled = true");
  frame.apply(-1, 0);
  frame.world.execute("UPDATE pawl.idempotency_scopes SET name = 'of another'");
  CHECK(frame.refusal(0, 1) == "PW017");
  CHECK(frame.world.number("SELECT count(*) FROM ledger") == 1);
}

TEST_CASE("a partition that is taken while a handler runs: its message is rolled back") {
  const auto isolation = GENERATE(from_range(kIsolations));
  CAPTURE(isolation);
  ByHand frame("", handler_in(isolation));
  // Where the transaction keeps one snapshot, the epoch that it sees is the old one.
  frame.at(pawl::Step::kHandlerReturned, [&] { frame.fence(); });
  CHECK(frame.refusal_to_finish(0) == (isolation == "read committed" ? kFenced : "40001"));
  CHECK(frame.refusal_to_finish(0) == kFenced);
  CHECK(frame.world.number("SELECT count(*) FROM ledger") == 0);
  frame.acquire();
  CHECK(frame.ahead() == "");
}

TEST_CASE("an acquire waits for a message that is about to commit, and is told of it") {
  ByHand frame;
  std::string refusal;
  frame.at(pawl::Step::kOffsetAdvancing, [&] { refusal = frame.refusal_to_fence(); });
  frame.finish(0);
  CHECK(refusal == "55P03");
  frame.fence();
  frame.acquire();
  CHECK(frame.ahead() == "0 applied");
}

// Fails where acquire reads the row before it locks it: the new owner would begin with messages
// that the former one has committed.
TEST_CASE("an acquire waits for an advance that is about to commit, and returns its offset") {
  ByHand frame;
  // Outlives the transaction, so that its thread does not wait for that in vain.
  std::future<std::string> stored;
  pqxx::connection owner(frame.world.url());
  pqxx::work advance(owner);
  advance.exec("UPDATE pawl.processed_kafka_offsets SET last_processed_offset = 1");
  stored = std::async(std::launch::async, [&] {
    return frame.world.value(
        "SELECT a.stored_offset FROM pawl.processed_kafka_offsets r, "
        "pawl.acquire(r.consumer_id, r.topic, r.partition, 'another', NULL, NULL) a");
  });
  wait_until(
      [&] {
        return frame.world.number(
                   "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND "
                   "wait_event_type = 'Lock'") == 1;
      },
      30s, "the acquire to wait for the row");
  advance.commit();
  CHECK(stored.get() == "1");
}

TEST_CASE(
    "a position that an operator sets keeps what was finished above it, but for what is set back") {
  ByHand frame;
  frame.finish(1);
  frame.finish(2);
  REQUIRE(frame.count_attempt(0));
  const auto change = [&](const std::string& offset) {
    frame.world.execute(
        fmt::format("SELECT pawl.operator_change(consumer_id, topic, partition, {}, 'running', "
                    "'set', 'test') FROM pawl.processed_kafka_offsets",
                    offset));
    CHECK(frame.refusal_to_finish(0) == kFenced);
    frame.acquire();
  };
  change("NULL");
  // Its attempts begin anew, as with any resume.
  CHECK(frame.ahead() == "1 applied, 2 applied");
  // What was finished above where it goes on stays so; what is set back is done again.
  change("0");
  CHECK(frame.ahead() == "1 applied, 2 applied");
  // Also from where it stands.
  change("0");
  CHECK(frame.ahead() == "");
}

TEST_CASE("a message that is finished cannot be left out") {
  ByHand frame;
  frame.finish(0);
  frame.world.execute("UPDATE pawl.processed_kafka_offsets SET last_processed_offset = 0");
  REQUIRE_THROWS_WITH(
      frame.world.execute("SELECT pawl.operator_change(consumer_id, topic, partition, NULL, NULL, "
                          "'skip', 'test') FROM pawl.processed_kafka_offsets"),
      ContainsSubstring("is already processed"));
}
