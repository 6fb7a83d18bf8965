#include "console/find_message.hpp"

#include <catch2/catch_test_macros.hpp>

using namespace pawl;
using namespace pawl::cli;

namespace {

constexpr const char* kOffsets =
    ". Topics, stored offsets, and ends of logs:\n  pawl offsets show --config pawl.toml";

InvocationOptions invocation() {
  return {"pawl", "pawl.toml", {}};
}

std::string peek_at(const std::string& offset) {
  return "pawl partitions peek --config pawl.toml --topic orders --partition 3 --offset " + offset;
}

}  // namespace

TEST_CASE("a partition exists if its number is below the count of its topic") {
  struct Case {
    std::int32_t partition;
    std::optional<std::int32_t> partitions;
    std::optional<std::string> text;
  };
  const Case cases[] = {
      {0, 1, std::nullopt},
      {2, 3, std::nullopt},
      {3, 3, "orders[3] does not exist, because topic orders has 3 partitions, 0 to 2"},
      {1, 1, "orders[1] does not exist, because topic orders has 1 partition, 0"},
      {-1, 3, "orders[-1] does not exist, because topic orders has 3 partitions, 0 to 2"},
      {0, std::nullopt, "topic orders does not exist in Kafka"},
  };
  for (const auto& [partition, partitions, text] : cases) {
    const auto found = missing_partition_text(invocation(), {"orders", partition}, partitions);
    CHECK(found == (text ? std::optional(*text + kOffsets) : std::nullopt));
  }
}

TEST_CASE("an offset outside of the log is an error with the range") {
  const std::string before =
      "orders[3]@4 cannot be read, because Kafka delivers offsets 5 to 9 of this partition. The "
      "first message:\n  " +
      peek_at("5");
  const std::string after =
      "cannot be read, because Kafka delivers offsets 5 to 9 of this partition";
  struct Case {
    std::int64_t offset;
    bool exact;
    kafka::LogRange log;
    std::optional<std::string> text;
  };
  const Case cases[] = {
      {5, true, {5, 10}, std::nullopt},
      {9, true, {5, 10}, std::nullopt},
      {9, false, {5, 10}, std::nullopt},
      {4, true, {5, 10}, before},
      {4, false, {5, 10}, before},
      {10, true, {5, 10}, "orders[3]@10 " + after + kOffsets},
      {-1,
       true,
       {0, 1},
       "orders[3]@-1 cannot be read, because Kafka delivers offsets 0 to 0 of "
       "this partition. The first message:\n  " +
           peek_at("0")},
      {10,
       false,
       {5, 10},
       std::string("orders[3] has no message at or after offset 10, and its "
                   "log ends at offset 10") +
           kOffsets},
      {4,
       true,
       {5, 5},
       std::string("orders[3]@4 cannot be read, because Kafka delivers no message "
                   "of this partition: its log is empty and ends at offset 5") +
           kOffsets},
      {4,
       false,
       {5, 5},
       std::string("orders[3] has no message at or after offset 4, and its log "
                   "ends at offset 5") +
           kOffsets},
  };
  for (const auto& [offset, exact, log, text] : cases) {
    CAPTURE(offset, exact);
    CHECK(outside_log_text(invocation(), {{"orders", 3}, offset, exact}, log) == text);
  }
}

TEST_CASE("an offset inside of the log without a message is an error with the next message") {
  const std::string gap =
      "orders[3]@7 is not a message: it is a marker of a transaction, belongs to an aborted "
      "transaction, or was removed by compaction";
  struct Case {
    bool exact;
    std::optional<std::int64_t> next;
    std::optional<std::string> text;
  };
  const Case cases[] = {
      {true, 7, std::nullopt},
      {false, 7, std::nullopt},
      {false, 8, std::nullopt},
      {true, 8, gap + ". The next message:\n  " + peek_at("8")},
      {true, std::nullopt,
       gap + ". No message follows before the end of the log at offset 10" + kOffsets},
      {false, std::nullopt,
       std::string("orders[3] has no message at or after offset 7, and its log ends at offset 10") +
           kOffsets},
  };
  for (const auto& [exact, next, text] : cases)
    CHECK(no_message_text(invocation(), {{"orders", 3}, 7, exact}, {5, 10}, next) == text);
}
