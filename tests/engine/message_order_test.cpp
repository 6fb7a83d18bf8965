// What stands between the fetch and the offset: a message that was lost or overtaken on its way
// from Kafka's client to the frame cannot be passed over, whoever lost it.
#include <catch2/catch_test_macros.hpp>

#include <fmt/format.h>

#include <memory>
#include <vector>

#include "config/load.hpp"
#include "engine/context.hpp"
#include "engine/message_processor.hpp"
#include "kafka/fetch_one.hpp"
#include "payments_world.hpp"

using namespace std::chrono_literals;
using pawl::kafka::Record;
using pawl::test::PaymentsWorld;

namespace {

pawl::Options options_of(const PaymentsWorld& world) {
  pawl::config::LoadRequest request;
  request.path = "test.toml";
  request.text = world.config();
  return pawl::config::load(request);
}

/// The engine's way of one message without the engine around it, so that a test chooses what is
/// handed over and which predecessor it claims.
class ByHand {
 public:
  ByHand()
      : world(1),
        options_(options_of(world)),
        router_(options_, registry_),
        observers_({}),
        client_(options_.kafka, {}),
        session_(pawl::engine::session_settings(options_)),
        context_(make_context()),
        processor_(*context_),
        partition_{world.topic(), 0} {
    for (int i = 0; i < 3; ++i)
      world.produce_one(fmt::format("message-{}", i), 10 + i, 0);
    for (int i = 0; i < 3; ++i) {
      records_.push_back(pawl::kafka::fetch_one(client_, partition_, i, 20s).value());
    }
    source_ = context_->offsets.first_contact(session_, {world.topic(), "earliest", {-1}});
    acquire();
  }

  void acquire() { epoch_ = context_->offsets.acquire(session_, partition_, "by hand")->epoch; }
  pawl::ledger::OwnerEpoch epoch() const { return epoch_; }
  void use_epoch(pawl::ledger::OwnerEpoch epoch) { epoch_ = epoch; }

  void apply(std::int64_t previous, std::size_t offset) {
    processor_.process(session_, {partition_, source_, topic_id_, epoch_, previous},
                       records_.at(offset));
  }
  /// Applies it; the SQLSTATE with which that was refused, "" when it was not.
  std::string refusal(std::int64_t previous, std::size_t offset) {
    try {
      apply(previous, offset);
    } catch (const pawl::postgres::Error& error) {
      return error.sqlstate();
    }
    return "";
  }

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
  std::unique_ptr<pawl::engine::Context> make_context() {
    auto registration =
        pawl::ledger::register_consumer(session_, options_.postgres.schema, options_.kafka.cluster,
                                        options_.kafka.group, client_.cluster_id(20s));
    const auto consumer = registration.consumer;
    return std::unique_ptr<pawl::engine::Context>(
        new pawl::engine::Context{options_,
                                  registry_,
                                  router_,
                                  observers_,
                                  client_,
                                  std::move(registration),
                                  pawl::ledger::OffsetRegister(options_.postgres.schema, consumer),
                                  pawl::ledger::IdempotencyKeys(options_.postgres.schema),
                                  pawl::ledger::SkippedMessages(options_.postgres.schema, consumer),
                                  pawl::engine::TopicDirectory(client_, router_.topics()),
                                  {},
                                  "by hand"});
  }

  pawl::Options options_;
  pawl::Registry registry_;
  pawl::handlers::Router router_;
  pawl::engine::Observers observers_;
  pawl::kafka::Client client_;
  pawl::postgres::Session session_;
  std::unique_ptr<pawl::engine::Context> context_;
  pawl::engine::MessageProcessor processor_;
  pawl::TopicPartition partition_;
  std::string topic_id_;
  std::vector<Record> records_;
  pawl::ledger::SourceId source_{};
  pawl::ledger::OwnerEpoch epoch_{};
};

constexpr const char* kOutOfOrder = "PW002";
constexpr const char* kFenced = "PW001";

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
