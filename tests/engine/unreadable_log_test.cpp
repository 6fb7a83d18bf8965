// Batches that Kafka's client cannot read: a bit that fell over on the broker's disk, a format that
// the client does not know. librdkafka passes over them with a word; to a consumer what follows
// looks as if compaction had left a hole there.
#include <fmt/format.h>
#include <signal.h>

#include <array>
#include <fstream>
#include <pawl/consumer.hpp>

#include "payments_world.hpp"
#include "prelude.hpp"
#include "process_watch.hpp"

namespace {

constexpr int kBatch = 5;  // messages of each batch in the log

// Where things stand in a record batch (Kafka's documentation, "Record Batch").
constexpr std::streamoff kLengthAt = 8;
constexpr std::streamoff kMagicAt = 16;
constexpr std::streamoff kLastOffsetDeltaAt = 23;
constexpr std::streamoff kHeader = 61;

struct Damage {
  std::string name;
  std::streamoff at;  ///< behind the batch's begin
  char value;
  std::string said;  ///< by the client
};
const std::vector<Damage>& damages() {
  static const std::vector<Damage> kDamages{
      {"a flipped byte", kHeader + 20, '\x7f', "failed CRC32C check"},
      {"an unknown format", kMagicAt, 7, "MagicByte 7"},
  };
  return kDamages;
}

/// One partition whose batches are of five messages each.
class Log {
 public:
  explicit Log(const pawl::test::Mode& mode) : world(1), producer_(make_producer(world)) {
    world.use(mode);
  }

  void send_batch() {
    for (int i = 0; i < kBatch; ++i) {
      pawl::testing::Record record;
      record.value = R"({"account":"acc-1","amount":1})";
      record.headers = {{"event-id", fmt::format("e-{}", sent_++)}};
      record.partition = 0;
      producer_->send(world.topic(), record);
    }
    producer_->flush();
  }

  /// Of the batch with this number, from 0. Returns what repairs it.
  Damage damage(int batch, const Damage& damage) {
    std::fstream file(
        world.broker().folder() / "data" / (world.topic() + "-0") / "00000000000000000000.log",
        std::ios::in | std::ios::out | std::ios::binary);
    const auto number_at = [&](std::streamoff at) {
      std::array<unsigned char, 4> bytes{};
      file.seekg(at);
      file.read(reinterpret_cast<char*>(bytes.data()), bytes.size());
      return bytes[0] << 24U | bytes[1] << 16U | bytes[2] << 8U | bytes[3] << 0U;
    };
    std::streamoff begin = 0;
    for (; batch > 0; --batch)
      begin += kLengthAt + 4 + number_at(begin + kLengthAt);
    REQUIRE(number_at(begin + kLastOffsetDeltaAt) == kBatch - 1);
    Damage repair = damage;
    file.seekg(begin + damage.at);
    file.get(repair.value);
    REQUIRE(repair.value != damage.value);
    file.seekp(begin + damage.at);
    file.put(damage.value);
    file.close();
    REQUIRE(file);
    return repair;
  }

  [[nodiscard]] std::int64_t applied() const { return world.number("SELECT count(*) FROM ledger"); }

  /// Halted before the batch that begins here, with what stands in it and where to go on.
  void require_halt(std::int64_t from, const Damage& damage) {
    REQUIRE(world.in_register(0, "state") == "halted");
    REQUIRE(world.in_register(0, "halt_kind") == "position");
    REQUIRE(world.stored(0) == from - 1);
    REQUIRE(applied() == from);
    REQUIRE(world.in_register(0, "halt_code") == "batch_unreadable");
    REQUIRE(world.in_register(0, "halt_parameters ->> 'offset'") == std::to_string(from));
    REQUIRE_THAT(world.in_register(0, "halt_cause"), ContainsSubstring(damage.said));
  }
  void require_halted_drain() {
    const auto process = world.start({.arguments = {"--drain"}});
    const pawl::test::ShowOnFailure show("consumer", *process);
    const auto status = process->wait(60s);
    INFO(process->output());
    REQUIRE(status.code == static_cast<int>(pawl::RunResult::kHaltedPartitions));
  }

  PaymentsWorld world;

 private:
  static std::unique_ptr<pawl::testing::KafkaProducer> make_producer(PaymentsWorld& world) {
    // What is sent at once is one batch.
    return std::make_unique<pawl::testing::KafkaProducer>(
        world.broker().bootstrap(), "", std::map<std::string, std::string>{{"linger.ms", "500"}});
  }

  std::unique_ptr<pawl::testing::KafkaProducer> producer_;
  int sent_ = 0;
};

}  // namespace

TEST_CASE("an unreadable batch halts behind the message before it, in every mode") {
  const auto damage = GENERATE(from_range(damages()));
  for (const auto& mode : modes()) {
    INFO(damage.name << ", " << mode.name);
    Log log(mode);
    for (int batch = 0; batch < 4; ++batch)
      log.send_batch();
    log.damage(2, damage);
    log.require_halted_drain();
    log.require_halt(2 * kBatch, damage);
    // A restart changes nothing.
    log.require_halted_drain();
    log.require_halt(2 * kBatch, damage);
    // What the text says, for whoever gives the batch up.
    log.world.execute(
        fmt::format("SELECT pawl.operator_change(consumer_id, topic, partition, {}, 'running',"
                    " 'set', 'test') FROM pawl.processed_kafka_offsets",
                    3 * kBatch - 1));
    log.world.drain();
    REQUIRE(log.applied() == 3 * kBatch);
    REQUIRE(log.world.number("SELECT count(*) FROM ledger WHERE substr(event_id, 3)::int"
                             " BETWEEN 10 AND 14") == 0);
  }
}

TEST_CASE("an unreadable batch with nothing behind it halts, and is read once it is mended") {
  const auto damage = GENERATE(from_range(damages()));
  INFO(damage.name);
  Log log(modes().front());
  log.send_batch();
  log.world.drain();
  const auto process = log.world.start();
  process->wait_for_output("EVENT partition_caught_up", 60s);
  process->kill(SIGSTOP);
  pawl::test::wait_until_stopped(*process, 60s);
  log.send_batch();
  const auto repair = log.damage(1, damage);
  process->kill(SIGCONT);
  INFO(process->output());
  log.world.wait_for_state(0, "halted");
  log.require_halt(kBatch, damage);
  log.damage(1, repair);
  // What `pawl partitions resume` does.
  log.world.execute(
      "SELECT pawl.operator_change(consumer_id, topic, partition, NULL, 'running', 'resume', "
      "'test')"
      "  FROM pawl.processed_kafka_offsets");
  log.world.wait_for_stored(0, 2 * kBatch - 1);
  REQUIRE(log.applied() == 2 * kBatch);
  process->kill(SIGTERM);
  REQUIRE(process->wait(60s).success());
}
