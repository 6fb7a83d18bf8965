#include "engine/assignment_halts.hpp"

#include <functional>

#include "prelude.hpp"

using namespace pawl::engine;
using pawl::ledger::PartitionState;
using pawl::ledger::RegisterRow;

namespace {

/// At next offset 5 of the topic "old", without an owner.
RegisterRow stored() {
  RegisterRow row;
  row.partition = {"orders", 3};
  row.stored = pawl::ledger::Position::behind(4);
  row.topic_id = "old";
  return row;
}

void own(RegisterRow& row) {
  row.owner = "host:1:ab";
  row.released = false;
}

}  // namespace

TEST_CASE("the halt of the next assignment is that of the checks of an assignment") {
  struct Case {
    const char* what;
    std::function<void(RegisterRow&)> change;
    const char* topic_id;
    std::optional<kafka::LogRange> log;
    const char* code;
  };
  const auto keep = [](RegisterRow& /*row*/) {};
  const Case cases[] = {
      {"within the log", keep, "old", {{0, 10}}, ""},
      {"at the end of the log", keep, "old", {{0, 5}}, ""},
      {"retention", keep, "old", {{6, 10}}, "log_start_moved"},
      {"a log that ends before", keep, "old", {{0, 4}}, "log_truncated"},
      {"a log that is not known", keep, "old", std::nullopt, ""},
      {"another topic", keep, "new", {{0, 10}}, "topic_recreated"},
      {"another topic before its log", keep, "new", {{0, 4}}, "topic_recreated"},
      {"a broker without IDs", keep, "", {{0, 10}}, ""},
      {"no stored ID", [](auto& row) { row.topic_id.clear(); }, "new", {{0, 10}}, ""},
      {"an owner may have advanced", own, "old", {{6, 10}}, ""},
      {"an owner of a deleted topic", own, "new", {{0, 10}}, "topic_recreated"},
      {"a paused partition",
       [](auto& row) { row.state = PartitionState::kPaused; },
       "old",
       {{6, 10}},
       "log_start_moved"},
      {"halted at its position already",
       [](auto& row) {
         row.state = PartitionState::kHalted;
         row.halt = pawl::ledger::make_halt("log_start_moved");
       },
       "new",
       {{6, 10}},
       ""},
  };
  for (const auto& [what, change, topic_id, log, code] : cases) {
    CAPTURE(what);
    auto row = stored();
    change(row);
    const auto halt = halt_at_assignment(row, topic_id, log);
    CHECK((halt ? halt->code : "") == code);
  }
}

TEST_CASE("the halt of the next assignment names an earlier halt that it replaces") {
  auto row = stored();
  row.state = PartitionState::kHalted;
  row.halt = pawl::ledger::make_halt("message_failed");
  row.halt.cause = "poison";
  const auto halt = halt_at_assignment(row, "old", kafka::LogRange{6, 10});
  REQUIRE(halt);
  CHECK(halt->parameter("earlier_halt") == "message_failed");
  CHECK(halt->parameter("earlier_cause") == "poison");
}

TEST_CASE("a partition without a row halts unless it was added after the first assignment") {
  const auto halt = halt_of_missing_row(1, 2);
  REQUIRE(halt);
  CHECK(halt->code == "offset_row_missing");
  CHECK(halt->number("partitions") == 2);
  CHECK_FALSE(halt_of_missing_row(2, 2));
}

TEST_CASE("halts of one topic and code have one cause") {
  AssignmentHalts halts;
  const auto add = [&](const char* topic, int partition, const char* code) {
    halts.emplace(pawl::TopicPartition{topic, partition}, pawl::ledger::make_halt(code));
  };
  add("orders", 0, "log_start_moved");
  add("orders", 1, "topic_recreated");
  add("orders", 2, "log_start_moved");
  add("payments", 0, "log_start_moved");
  using Group = std::vector<pawl::TopicPartition>;
  CHECK(by_cause(halts) ==
        std::vector<Group>{{{"orders", 0}, {"orders", 2}}, {{"orders", 1}}, {{"payments", 0}}});
}
