#include <nlohmann/json.hpp>

#include "cli/tail.hpp"
#include "prelude.hpp"

using namespace pawl::cli;
using pawl::ledger::PartitionState;
using pawl::ledger::RecentEvent;

namespace {

StatusPartition owned(int number, std::int64_t last) {
  StatusPartition partition;
  partition.partition = {"payments", number};
  auto& row = partition.row.emplace();
  row.partition = partition.partition;
  row.stored = ledger::Position::behind(last);
  row.base_offset = 0;
  row.applied = last + 1;
  row.owner = "host:1:ab";
  row.released = false;
  return partition;
}

TailLook look(std::vector<StatusPartition> partitions, std::vector<RecentEvent> events = {}) {
  TailLook look;
  look.status.now_ms = 1'800'000'000'000;  // 2027-01-15T08:00:00Z
  look.status.partitions = std::move(partitions);
  look.events = std::move(events);
  return look;
}

RecentEvent event(RecentEvent::Kind kind, std::string what, std::int64_t offset) {
  RecentEvent event;
  event.kind = kind;
  event.id = 100 + offset;
  event.partition = {"payments", 0};
  event.offset = offset;
  event.what = std::move(what);
  event.reason = "because";
  event.actor = "somebody";
  return event;
}

std::vector<std::string> told(const TailLook& before, const TailLook& next) {
  std::vector<std::string> texts;
  for (const auto& line : difference(before, next))
    texts.push_back(line.event + ": " + line.text);
  return texts;
}

}  // namespace

TEST_CASE("tail tells each thing that differs between two looks at a partition") {
  struct Row {
    const char* what;
    std::function<void(StatusPartition& was, StatusPartition& is)> change;
    std::vector<std::string> told;
  };
  const std::vector<Row> rows{
      {"nothing", [](auto&, auto&) {}, {}},
      {"an advance",
       [](auto&, auto& is) {
         is.row->stored = ledger::Position::behind(19);
         is.row->applied = 20;
         is.rate = 5.4;
         is.end = 25;
       },
       {"advanced: 10 messages  5/s  lag 5"}},
      {"an advance of which little is known, with duplicates",
       [](auto&, auto& is) {
         is.row->stored = ledger::Position::behind(11);
         is.row->applied = 11;
         is.row->duplicates = 1;
       },
       {"advanced: 2 messages  1 duplicate  lag ?"}},
      {"an advance over markers of transactions",
       [](auto&, auto& is) {
         is.row->stored = ledger::Position::behind(19);
         is.row->applied = 16;
       },
       {"advanced: 6 messages  4 offsets without a message  lag ?"}},
      {"the first message",
       [](auto& was, auto& is) {
         was = owned(0, -1);
         is = owned(0, 0);
         is.end = 1;
       },
       {"advanced: 1 message  lag 0"}},
      {"a position that was set by hand",
       [](auto&, auto& is) {
         is.row->stored = ledger::Position::behind(50);
         is.row->base_offset = 51;
       },
       {}},
      {"a position that was set back", [](auto&, auto& is) { is = owned(0, 3); }, {}},
      {"another owner",
       [](auto&, auto& is) { is.row->owner = "host:2:cd"; },
       {"acquired: acquired by host:2:cd from host:1:ab"}},
      {"an owner that let go",
       [](auto&, auto& is) { is.row->released = true; },
       {"unowned: released by host:1:ab"}},
      {"an owner that is gone",
       [](auto&, auto& is) { is.row->session_gone = true; },
       {"unowned: owner host:1:ab has no session any more"}},
      {"a first owner",
       [](auto& was, auto&) { was.row->released = true; },
       {"acquired: acquired by host:1:ab"}},
      {"a halt",
       [](auto&, auto& is) {
         is.row->state = PartitionState::kHalted;
         is.row->halt = {.kind = "message", .code = "message_failed", .cause = "it broke"};
       },
       {"halted: halted (message_failed): it broke"}},
      {"a halt for another cause",
       [](auto& was, auto& is) {
         was.row->state = is.row->state = PartitionState::kHalted;
         was.row->halt = {.kind = "message", .code = "message_failed", .cause = "it broke"};
         is.row->halt = {.kind = "message", .code = "message_failed", .cause = "it broke again"};
       },
       {"halted: halted (message_failed): it broke again"}},
      {"a halt that goes on",
       [](auto& was, auto& is) {
         was.row->state = is.row->state = PartitionState::kHalted;
         was.row->halt = is.row->halt = {.kind = "message", .code = "message_failed"};
       },
       {}},
      {"the end of a halt",
       [](auto& was, auto&) { was.row->state = PartitionState::kHalted; },
       {"resumed: resumed: the halt is over"}},
      {"attempts",
       [](auto&, auto& is) {
         is.row->attempts = 1;
         is.row->attempts_offset = 10;
       },
       {"retrying: retrying  1 failed attempt"}},
      {"attempts of a message beside others",
       [](auto&, auto& is) { is.row->ahead = {0, -1, 2, 3, "", 12}; },
       {"retrying: retrying  3 failed attempts"}},
      {"attempts that go on as they were",
       [](auto& was, auto& is) {
         was.row->attempts = is.row->attempts = 1;
         was.row->attempts_offset = is.row->attempts_offset = 10;
       },
       {}},
      {"probation",
       [](auto&, auto& is) { is.row->suspect = {10, 2, true}; },
       {"probation: on probation: processed alone; 2 processes have exited since"}},
      {"a partition without a row", [](auto&, auto& is) { is.row.reset(); }, {}},
      {"a partition that is new",
       [](auto& was, auto&) { was.row.reset(); },
       {"first_assigned: first assignment, starts at offset 10",
        "acquired: acquired by host:1:ab"}},
  };
  for (const auto& row : rows) {
    CAPTURE(row.what);
    auto was = owned(0, 9);
    auto is = was;
    row.change(was, is);
    CHECK(told(look({was}), look({is})) == row.told);
  }
}

TEST_CASE(
    "tail tells what the database keeps of messages and changes, many of a kind in one line") {
  using Kind = RecentEvent::Kind;
  auto letter = event(Kind::kDeadLetter, "dead", 5);
  letter.reason = "error";
  letter.handler = "pay";
  letter.error = "no such account\nand more";
  auto set = event(Kind::kChange, "offsets set", 4);
  set.from = 10;
  const auto before = look({owned(0, 9)});
  auto scheduled = letter;
  scheduled.what = "scheduled";
  CHECK(told(before, look({owned(0, 9)}, {scheduled})) ==
        std::vector<std::string>{"scheduled: retry 1 after earlier messages of its record key  "
                                 "#105  pay  no such account"});
  scheduled.sqlstate = "23503";
  scheduled.statement = "sql[1]";
  scheduled.retries = 1;
  scheduled.due_at = "2027-01-15T08:09:03Z";
  CHECK(told(before, look({owned(0, 9)}, {scheduled})) ==
        std::vector<std::string>{
            "scheduled: retry 2 at 08:09:03  #105  pay  23503 sql[1]: no such account"});
  const auto details = difference(before, look({owned(0, 9)}, {scheduled})).at(0).details;
  CHECK(details.at("due_at") == scheduled.due_at);
  CHECK(details.at("retries") == 1);
  CHECK(details.at("sqlstate") == "23503");
  CHECK(details.at("statement") == "sql[1]");
  scheduled.due_at = "2027-01-16T08:09:03Z";
  CHECK_THAT(told(before, look({owned(0, 9)}, {scheduled})).at(0),
             ContainsSubstring("retry 2 at 2027-01-16 08:09:03  "));
  CHECK(told(before, look({owned(0, 9)}, {letter, event(Kind::kDeadLetter, "parked", 6),
                                          event(Kind::kSkipped, "skipped", 7), set,
                                          event(Kind::kChange, "halt", 10)})) ==
        std::vector<std::string>{"dead_letter: dead letter  #105  pay  no such account",
                                 "parked: parked  #106", "skipped: skipped: because",
                                 "changed: offsets set by somebody, offset 10 to 4: because"});
  std::vector<RecentEvent> many;
  for (int offset = 0; offset < 21; ++offset)
    many.push_back(event(Kind::kSkipped, "skipped", offset));
  CHECK(told(before, look({owned(0, 9)}, many)) ==
        std::vector<std::string>{"skipped: 21 messages skipped"});
  // Who resumes tells it.
  auto halted = owned(0, 9);
  halted.row->state = PartitionState::kHalted;
  auto resume = event(Kind::kChange, "resume", 10);
  resume.from = 10;
  resume.reason = "";
  CHECK(told(look({halted}), look({owned(0, 9)}, {resume})) ==
        std::vector<std::string>{"changed: resume by somebody"});
}

TEST_CASE("tail tells once that a server does not answer, and what has happened until it does") {
  const auto before = look({owned(0, 9)});
  auto away = look({});
  away.status.postgres_problem = "refused";
  CHECK(told(before, away) ==
        std::vector<std::string>{"database_unreachable: cannot be used: refused. Retrying"});
  away.status.postgres_answers = false;
  CHECK(told(before, away) ==
        std::vector<std::string>{"database_unreachable: unreachable: refused. Retrying"});
  const auto waiting = remembered(before, away);
  CHECK(told(waiting, away).empty());
  auto back = look({owned(0, 12)});
  CHECK(told(remembered(waiting, away), back) ==
        std::vector<std::string>{"database_reachable: reachable again",
                                 "advanced: 3 messages  lag ?"});
  back.status.kafka_problem = "refused";
  CHECK(told(before, back).front().starts_with("kafka_unreachable: "));
  CHECK(told(back, look({owned(0, 12)})).front().starts_with("kafka_reachable: "));
}

TEST_CASE(
    "a line of tail names time and place, steers no terminal, and is an object for machines") {
  auto halted = owned(3, 9);
  halted.row->state = PartitionState::kHalted;
  halted.row->halt = {.kind = "message", .code = "message_failed", .cause = "a\x1b[31m"};
  const auto lines = difference(look({owned(3, 9)}), look({halted}));
  REQUIRE(lines.size() == 1);
  CHECK(line_text(lines[0]) ==
        "2027-01-15T08:00:00Z  payments[3]               halted (message_failed): a\\x1b[31m");
  const auto json = nlohmann::json::parse(line_json(lines[0]));
  CHECK(json.at("time") == "2027-01-15T08:00:00Z");
  CHECK(json.at("event") == "halted");
  CHECK(json.at("topic") == "payments");
  CHECK(json.at("partition") == 3);
  CHECK(json.at("halt_cause") == "a\x1b[31m");
}

TEST_CASE("the subject of a line of tail has the offsets that it is about") {
  const auto subject_of = [](const TailLook& before, const TailLook& next) {
    const auto lines = difference(before, next);
    REQUIRE(lines.size() == 1);
    return lines[0].subject;
  };
  const auto before = look({owned(0, 9)});
  CHECK(subject_of(before, look({owned(0, 10)})) == "payments[0]@10");
  CHECK(subject_of(before, look({owned(0, 12)})) == "payments[0]@10-12");
  using Kind = RecentEvent::Kind;
  CHECK(subject_of(before, look({owned(0, 9)}, {event(Kind::kDeadLetter, "dead", 5)})) ==
        "payments[0]@5");
  CHECK(subject_of(before, look({owned(0, 9)}, {event(Kind::kChange, "pause", 5)})) ==
        "payments[0]");
  auto halted = owned(0, 9);
  halted.row->state = PartitionState::kHalted;
  halted.row->halt.message_offset = 10;
  CHECK(subject_of(before, look({halted})) == "payments[0]@10");
  auto away = look({});
  away.status.kafka_problem = "refused";
  CHECK(subject_of(look({}), away) == "Kafka");
}

TEST_CASE("what the database dates before the sample comes before what the sample shows") {
  auto letter = event(RecentEvent::Kind::kDeadLetter, "dead", 5);
  letter.at = "2027-01-15T07:59:59Z";
  const auto lines = difference(look({owned(0, 9)}), look({owned(0, 12)}, {letter}));
  REQUIRE(lines.size() == 2);
  CHECK(lines[0].event == "dead_letter");
  CHECK(lines[1].event == "advanced");
}

TEST_CASE("a line of tail in a terminal has the time of day, a symbol, and wraps below itself") {
  const Terminal terminal{70, 24, true, true};
  auto letter = event(RecentEvent::Kind::kDeadLetter, "dead", 5);
  letter.reason = "error";
  letter.handler = "pay";
  letter.statement = "sql[0]";
  letter.error = "no account of this number is known";
  const auto lines = difference(look({owned(0, 9)}), look({owned(0, 12)}, {letter}));
  REQUIRE(lines.size() == 2);
  CHECK(line_text(lines[0], terminal) == "08:00:00  payments[0]@10-12         ✔ 3 messages  lag ?");
  CHECK(line_text(lines[1], terminal) ==
        "08:00:00  payments[0]@5             \033[31m✖ dead letter  #105  pay  sql[0]:\n" +
            std::string(36, ' ') + "no account of this number is known\033[0m");
}

TEST_CASE("tail keeps to the topic and the partition that are asked for") {
  using Kind = RecentEvent::Kind;
  auto other = owned(0, 9);
  other.partition.topic = "orders";
  auto both = look({other, owned(0, 9), owned(1, 9)}, {event(Kind::kSkipped, "skipped", 7)});
  auto topic = both;
  keep_only(topic, "payments", std::nullopt);
  CHECK(topic.status.partitions.size() == 2);
  CHECK(topic.events.size() == 1);
  keep_only(both, "payments", 1);
  CHECK(both.status.partitions.size() == 1);
  CHECK(both.events.empty());
}
