#include "dashboard/pages/pages.hpp"

#include <algorithm>

#include "dashboard/actions.hpp"
#include "dashboard/queries.hpp"
#include "prelude.hpp"

using namespace pawl::dashboard;
using pawl::ledger::PartitionState;

namespace {

const std::string kEvil = "<script>alert('x')</script>\"&";

Frame frame(bool acts) {
  Frame frame;
  frame.cluster = "main";
  frame.group = "g" + kEvil;
  frame.path = "/";
  frame.may_sign_in = frame.may_act = true;
  if (acts)
    frame.actor = Actor{"anna" + kEvil, std::string(64, 'a'), true};
  frame.done = kEvil;
  frame.problem = kEvil;
  return frame;
}

PartitionLine line(PartitionState state, const std::string& topic = "orders") {
  PartitionLine line;
  line.row.partition = {topic, 3};
  line.row.stored = pawl::ledger::Position::behind(41);
  line.row.state = state;
  line.row.owner = "host:1:aa";
  line.row.released = false;
  if (state == PartitionState::kHalted) {
    line.row.halt = {.kind = "message", .code = "message_failed", .message_offset = 42};
    line.halt = "because " + kEvil;
  }
  return line;
}

pawl::ledger::DeadLetter letter() {
  pawl::ledger::DeadLetter letter;
  letter.id = 7;
  letter.partition = {"t" + kEvil, 1};
  letter.offset = 9;
  letter.status = "dead";
  letter.reason = "failed";
  letter.handler = kEvil;
  letter.statement = "sql[0]" + kEvil;
  letter.error = "error " + kEvil;
  letter.error_detail = "DETAIL-OF-ROW";
  letter.payload = "complete";
  letter.record_key = "RECORD-KEY";
  letter.record_value = R"({"secret":"RECORD-VALUE"})";
  letter.headers = {{"header", "HEADER-VALUE"}};
  letter.idempotency_key = "IDEMPOTENCY-KEY";
  return letter;
}

pawl::ledger::SharedCondition condition(pawl::Condition::Kind kind) {
  const bool blocked = kind == pawl::Condition::Kind::kPartitionBlocked;
  pawl::ledger::SharedCondition shared;
  shared.condition.kind = kind;
  shared.condition.subject = (blocked ? "orders[3]" : "https://api") + kEvil;
  shared.condition.topic = blocked ? "orders" + kEvil : "";
  shared.condition.partition = blocked ? 3 : -1;
  shared.condition.since = pawl::Timestamp(std::chrono::milliseconds(1767225600000));
  shared.condition.messages = 7;
  shared.condition.cause = "CAUSE" + kEvil;
  shared.owners = {"host:1:aa", "host:2:bb" + kEvil};
  return shared;
}

void check_escaped(const std::string& html) {
  CHECK_THAT(html, !ContainsSubstring("<script>alert") && !ContainsSubstring("'x'") &&
                       !ContainsSubstring("\"&\""));
  CHECK_THAT(html, ContainsSubstring("&lt;script&gt;alert(&#39;x&#39;)&lt;/script&gt;&quot;&amp;"));
}

}  // namespace

TEST_CASE("text is escaped for elements and attributes") {
  CHECK(escape("a<b>&\"'c") == "a&lt;b&gt;&amp;&quot;&#39;c");
  CHECK(escape(std::string("a\0b\x1b[31m\xff", 9)) == "a\\x00b\\x1b[31m\\xff");
  CHECK(escape("grün\nzwei") == "grün\nzwei");
}

TEST_CASE("fields of queries and forms") {
  CHECK(parse_fields("a=1&b=x+y%26%3d&c&=z&a=2") ==
        Fields{{"", "z"}, {"a", "2"}, {"b", "x y&="}, {"c", ""}});
  CHECK(parse_fields("a=%zz%4") == Fields{{"a", "%zz%4"}});
  CHECK(to_query({{"a b", "ü&"}, {"empty", ""}}) == "?a%20b=%C3%BC%26");
  CHECK(to_query({{"empty", ""}}) == "");
  CHECK(number_field({{"n", "-12"}}, "n") == -12);
  CHECK_FALSE(number_field({{"n", "12x"}}, "n"));
  CHECK_FALSE(number_field({{"n", "99999999999999999999"}}, "n"));
  CHECK_FALSE(number_field({}, "n"));
}

TEST_CASE("fields that PostgreSQL takes for no text") {
  CHECK(are_text(parse_fields("")));
  CHECK(are_text(parse_fields("topic=%C3%A4&state=halted")));
  CHECK_FALSE(are_text(parse_fields("state=halted&topic=%00")));
  CHECK_FALSE(are_text(parse_fields("handler=%ff")));
}

TEST_CASE("dead letters, scheduled retries, and parked messages are counted separately") {
  PartitionsPage page;
  page.letters = {3, 2, 1200, false};
  const auto text = partitions_html(frame(false), page);
  CHECK_THAT(text, ContainsSubstring("Dead letters") && ContainsSubstring(">3<") &&
                       ContainsSubstring("href=\"/dead-letters?status=dead\"") &&
                       ContainsSubstring("href=\"/dead-letters?status=scheduled\"") &&
                       ContainsSubstring("Scheduled retries") && ContainsSubstring(">2<") &&
                       ContainsSubstring("Parked messages") && ContainsSubstring(">1\u202f200<"));
  page.letters = {0, 0, 0, false};
  CHECK_THAT(partitions_html(frame(false), page), ContainsSubstring("Dead letters") &&
                                                      !ContainsSubstring("Scheduled retries") &&
                                                      !ContainsSubstring("Parked messages"));
  page.letters = {100000, 0, 0, true};
  CHECK_THAT(partitions_html(frame(false), page), ContainsSubstring(">at least 100\u202f000<"));
}

TEST_CASE("conditions are shown with their cause and the processes that report them") {
  using Kind = pawl::Condition::Kind;
  PartitionsPage page;
  CHECK_THAT(partitions_html(frame(false), page), !ContainsSubstring("Conditions"));
  page.conditions = {condition(Kind::kRemoteServiceUnreachable),
                     condition(Kind::kPartitionBlocked)};
  PartitionPage one;
  one.line = line(PartitionState::kRunning);
  CHECK_THAT(partition_html(frame(false), one), !ContainsSubstring("Conditions"));
  one.conditions = {condition(Kind::kPartitionBlocked)};
  const std::string since = "since 2026-01-01T00:00:00Z: CAUSE";
  const auto all = partitions_html(frame(false), page);
  CHECK_THAT(all, ContainsSubstring("Conditions</h2>") &&
                      ContainsSubstring("unreachable</span> https://api&lt;") &&
                      ContainsSubstring("has been unreachable " + since) &&
                      ContainsSubstring("Reported by host:1:aa, host:2:bb&lt;"));
  for (const auto& html : {all, partition_html(frame(false), one)}) {
    CHECK_THAT(html, ContainsSubstring("blocked</span> <a href=\"/partition?partition=3&amp;topic="
                                       "orders") &&
                         ContainsSubstring("has waited for a lock " + since) &&
                         ContainsSubstring("7 messages wait"));
    check_escaped(html);
  }
}

TEST_CASE("numbers for eyes") {
  CHECK(grouped(0) == "0");
  CHECK(grouped(999) == "999");
  CHECK(grouped(-1234567) == "-1\u202f234\u202f567");
  CHECK_THAT(grouped_or_unknown(std::nullopt), ContainsSubstring("unknown"));
}

TEST_CASE("a line has a gap where nothing is known, and is none of one value") {
  CHECK(sparkline({}) == "");
  CHECK(sparkline({1.0}) == "");
  CHECK(sparkline({1.0, std::nullopt, 2.0}) == "");
  CHECK_THAT(sparkline({0.0, 10.0}), ContainsSubstring("points=\"0.0,23.0 120.0,1.0\""));
  CHECK_THAT(sparkline({1.0, 1.0, std::nullopt, 1.0, 1.0}), ContainsSubstring("/><polyline"));
}

TEST_CASE("a line of many values keeps the last, and has not many points") {
  std::vector<std::optional<double>> values(90, 0.0);
  values.back() = 1.0;
  const auto line = sparkline(values);
  CHECK(std::ranges::count(line, ',') == 45);
  CHECK_THAT(line, ContainsSubstring(" 120.0,1.0\""));
}

namespace {

pawl::ledger::SetApart apart() {
  pawl::ledger::SetApart message;
  message.id = 7;
  message.topic = kEvil;
  message.key = std::string("RECORD-KEY") + kEvil;
  message.reason = kEvil;
  return message;
}

LeasesPage leases() {
  LeasesPage page;
  page.counts.unknown = 1;
  page.counts.losses = 1;
  auto& lease = page.leases.emplace_back();
  lease.scope = kEvil;
  lease.key = std::string("LEASE-KEY") + kEvil;
  lease.state = pawl::ledger::LeaseState::kUnknown;
  lease.attempts = 2;
  lease.unknown_since = pawl::ledger::Instant(std::chrono::milliseconds(1767225600000));
  lease.owner = kEvil;
  lease.topic = kEvil;
  lease.dead_letter = 12;
  auto& loss = page.losses.emplace_back();
  loss.id = 3;
  loss.key = std::string("LOST-KEY") + kEvil;
  loss.topic = kEvil;
  page.most = 100;
  page.resolve = "pawl calls resolve --config F";
  return page;
}

}  // namespace

TEST_CASE("shards, failed messages, calls, and lost leases are shown on their pages") {
  OutboxPage outbox;
  outbox.status.lanes.resize(2);
  outbox.status.lanes[1].lane = 1;
  outbox.status.lanes[1].waiting = 1234;
  outbox.status.lanes[1].owner = "host:1";
  outbox.status.lanes[1].owner_late = true;
  outbox.status.set_apart = 2;
  outbox.status.relays = {{"host:1", true, "Kafka is unreachable"}};
  outbox.set_apart = {apart()};
  const auto text = outbox_html(frame(true), outbox);
  CHECK_THAT(text, ContainsSubstring("1\u202f234") && ContainsSubstring("host:1") &&
                       ContainsSubstring("late</span>") &&
                       ContainsSubstring("Kafka is unreachable") &&
                       ContainsSubstring("RECORD-KEY") && ContainsSubstring("The first 1 of 2."));
  const auto calls = leases_html(frame(true), leases());
  CHECK_THAT(calls, ContainsSubstring("<code>pawl calls resolve --config F --not-done -- KEY<") &&
                        ContainsSubstring("datetime=\"2026-01-01T00:00:00Z\""));
  auto known = leases();
  known.leases[0].state = pawl::ledger::LeaseState::kWaits;
  CHECK_THAT(leases_html(frame(true), known), !ContainsSubstring("calls resolve"));
  CHECK_THAT(calls, ContainsSubstring("LEASE-KEY") && ContainsSubstring("LOST-KEY") &&
                        ContainsSubstring("unknown</span>") &&
                        ContainsSubstring("href=\"/dead-letter?id=12\""));
  CHECK_THAT(outbox_html(frame(false), outbox), !ContainsSubstring("RECORD-KEY"));
  CHECK_THAT(leases_html(frame(false), leases()),
             !ContainsSubstring("LEASE-KEY") && !ContainsSubstring("LOST-KEY"));
}

TEST_CASE("leases that Redis has are shown by a command that can be pasted") {
  LeasesPage page;
  page.elsewhere = "payments calls list --config '/etc/pawl/a <b>.toml'";
  CHECK_THAT(leases_html(frame(true), page),
             ContainsSubstring("<code>payments calls list --config &#39;/etc/pawl/a &lt;b&gt;"));
}

TEST_CASE("what comes from elsewhere is text on every page") {
  for (const bool acts : {false, true}) {
    PartitionsPage partitions;
    partitions.topic = kEvil;
    partitions.problems = {kEvil};
    partitions.lines = {line(PartitionState::kHalted, kEvil)};
    check_escaped(partitions_html(frame(acts), partitions));
    PartitionPage partition;
    partition.line = line(PartitionState::kHalted, kEvil);
    partition.action = acts ? "skip" : "";
    partition.reason = kEvil;
    partition.history = {{1, {kEvil, 0}, kEvil, kEvil, 1, 2, kEvil, kEvil}};
    check_escaped(partition_html(frame(acts), partition));
    LettersPage letters;
    letters.filters = {{"topic", kEvil}, {"record_key", kEvil}};
    letters.problem = kEvil;
    letters.letters = {letter()};
    letters.next = pawl::ledger::place_in(letter());
    check_escaped(letters_html(frame(acts), letters));
    LetterPage one;
    one.letter = letter();
    one.letter.record_value = kEvil;
    check_escaped(letter_html(frame(acts), one));
    KeysPage keys;
    keys.key = kEvil;
    keys.scopes = {{kEvil, kEvil}};
    keys.keys = {{kEvil, kEvil, kEvil, 0, 1, kEvil, 2, kEvil, 20}};
    check_escaped(keys_html(frame(acts), keys));
    OutboxPage outbox;
    outbox.status.lanes.resize(1);
    outbox.status.lanes[0].owner = kEvil;
    outbox.status.relays = {{kEvil, true, kEvil}};
    outbox.set_apart = {apart()};
    check_escaped(outbox_html(frame(acts), outbox));
    check_escaped(leases_html(frame(acts), leases()));
    check_escaped(history_html(frame(acts), {partition.history, true}));
    check_escaped(sign_in_html(frame(acts), kEvil));
    check_escaped(message_html(frame(acts), kEvil));
  }
}

TEST_CASE("a dead letter that is retried automatically is shown as scheduled, with its time") {
  LettersPage letters;
  letters.letters = {letter()};
  letters.letters[0].due_at = "2026-01-02T00:00:00Z";
  const auto list = letters_html(frame(false), letters);
  CHECK_THAT(list, ContainsSubstring("scheduled</span>") && ContainsSubstring("2026-01-02T00:00") &&
                       !ContainsSubstring("badge bad"));
  LetterPage one;
  one.letter = letters.letters[0];
  CHECK_THAT(letter_html(frame(false), one), ContainsSubstring("scheduled</span>"));
  one.letter.due_at = "turn";
  CHECK_THAT(letter_html(frame(false), one),
             ContainsSubstring("Retry due</dt><dd>after earlier ones<"));
  one.letter.due_at = "";
  CHECK_THAT(letter_html(frame(false), one),
             ContainsSubstring("dead</span>") && !ContainsSubstring("Retry due"));
}

TEST_CASE("the failed replays of a dead letter are counted") {
  LetterPage page;
  page.letter = letter();
  page.letter.replays = 2;
  const std::string name = "Failed replays</dt><dd>";
  CHECK_THAT(letter_html(frame(false), page), ContainsSubstring(name + "2<"));
  page.letter.status = "replayed";
  CHECK_THAT(letter_html(frame(false), page), ContainsSubstring(name + "1<"));
}

TEST_CASE("who may not act sees no key, no value, no detail, and no form that acts") {
  LetterPage page;
  page.letter = letter();
  page.action = "replay";
  LettersPage letters;
  letters.letters = {letter()};
  const auto reader = letter_html(frame(false), page) + letters_html(frame(false), letters);
  for (const auto* hidden :
       {"RECORD-KEY", "RECORD-VALUE", "HEADER-VALUE", "IDEMPOTENCY-KEY", "DETAIL-OF-ROW"}) {
    CAPTURE(hidden);
    CHECK_THAT(reader, !ContainsSubstring(hidden));
    CHECK_THAT(letter_html(frame(true), page), ContainsSubstring(hidden));
  }
  CHECK_THAT(reader, !ContainsSubstring("method=\"post\""));
  PartitionPage partition;
  partition.line = line(PartitionState::kHalted);
  partition.action = "resume";
  CHECK_THAT(partition_html(frame(false), partition), !ContainsSubstring("method=\"post\""));
}

TEST_CASE("who may not act sees the cause of a halt, but not who acted and why") {
  const std::vector<pawl::ledger::HistoryRow> rows{
      {1, {"orders", 3}, "", "halt", 1, 1, "THE-CAUSE", "ROLE-OF-PAWL"},
      {2, {"orders", 3}, "", "pause", 1, 1, "by anna (dashboard): JANE-ROE", "ROLE-OF-ANNA"}};
  PartitionPage halted;
  halted.line = line(PartitionState::kHalted);
  halted.line.halt = "HALT-REASON";
  halted.history = rows;
  PartitionPage paused;
  paused.line = line(PartitionState::kPaused);
  paused.line.row.operator_reason = "by anna (dashboard): PAUSE-REASON";
  LetterPage one;
  one.letter = letter();
  one.letter.status = "discarded";
  one.letter.resolved_at = "2026-01-01T00:00:00Z";
  one.letter.resolved_by = "ROLE-OF-BERT";
  one.letter.resolution = "by bert (dashboard): GIVEN-UP";
  const auto pages = [&](bool acts) {
    return partition_html(frame(acts), halted) + partition_html(frame(acts), paused) +
           history_html(frame(acts), {rows, false}) + letter_html(frame(acts), one);
  };
  const auto reader = pages(false);
  for (const auto* shown : {"THE-CAUSE", "HALT-REASON", "2026-01-01T00:00:00Z"}) {
    CAPTURE(shown);
    CHECK_THAT(reader, ContainsSubstring(shown));
  }
  for (const auto* hidden : {"by anna", "JANE-ROE", "PAUSE-REASON", "ROLE-OF-PAWL", "ROLE-OF-ANNA",
                             "ROLE-OF-BERT", "GIVEN-UP"}) {
    CAPTURE(hidden);
    CHECK_THAT(reader, !ContainsSubstring(hidden));
    CHECK_THAT(pages(true), ContainsSubstring(hidden));
  }
}

TEST_CASE("keys are looked up only for who may act") {
  KeysPage keys;
  keys.key = "event-1";
  keys.scopes = {{"A-SCOPE", ""}};
  keys.letters = {77};
  keys.halts = {{{"HALTED-TOPIC", 3}, 341}};
  CHECK_THAT(keys_html(frame(false), keys),
             !ContainsSubstring("A-SCOPE") && !ContainsSubstring("id=77") &&
                 !ContainsSubstring("<form class=\"filter\"") && ContainsSubstring("sign in</a>"));
  CHECK_THAT(keys_html(frame(true), keys),
             ContainsSubstring("A-SCOPE") && ContainsSubstring("id=77") &&
                 ContainsSubstring("[3]@341</a>") && ContainsSubstring("HALTED-TOPIC"));
  for (const std::string name : {"record_key", "idempotency_key"}) {
    CAPTURE(name);
    std::string problem;
    const auto filter = letter_filter({{name, "k"}, {"topic", "t"}}, false, problem);
    CHECK(filter.topic == "t");
    CHECK_FALSE(filter.record_key_hash);
    CHECK(filter.idempotency_key == "");
    CHECK_THAT(problem, ContainsSubstring("omitted"));
    problem.clear();
    (void)letter_filter({{name, "k"}}, true, problem);
    CHECK(problem == "");
    CHECK_THAT(letters_html(frame(false), {}), !ContainsSubstring("name=\"" + name + "\""));
    CHECK_THAT(letters_html(frame(true), {}), ContainsSubstring("name=\"" + name + "\""));
  }
}

TEST_CASE("a form that acts asks for a reason, and brings along what was seen") {
  PartitionPage page;
  page.line = line(PartitionState::kHalted);
  page.action = "skip";
  CHECK_THAT(partition_html(frame(true), page),
             ContainsSubstring("name=\"form_key\" value=\"" + std::string(64, 'a') + "\"") &&
                 ContainsSubstring("name=\"seen\" value=\"halted@\"") &&
                 ContainsSubstring("name=\"offset\" value=\"42\"") &&
                 ContainsSubstring("name=\"reason\" value=\"\" required"));
}

TEST_CASE("what is not known is said to be unknown") {
  PartitionsPage page;
  page.partitions = 1;
  page.lines = {line(PartitionState::kRunning)};
  CHECK_THAT(partitions_html(frame(false), page),
             ContainsSubstring("<td class=\"number\"><span class=\"unknown\">unknown"));
}

TEST_CASE("what is the matter with partitions is counted and named as pawl status does it") {
  auto one = line(PartitionState::kRunning);
  one.course.lag = 8;
  one.row.since_update_ms = 61000;
  CHECK(one.concern() == pawl::cli::Concern::kNone);
  one.course.end_before = 43;
  PartitionsPage page;
  page.partitions = 1;
  page.lines = {one};
  page.counts.add(&one.row, one.course.end_before);
  CHECK_THAT(partitions_html(frame(false), page),
             ContainsSubstring("stalled</span>") && ContainsSubstring("Stalled</"));
  one.row.suspect = ledger::SuspectView{43, 1, true};
  page.lines = {one};
  CHECK_THAT(partitions_html(frame(false), page), ContainsSubstring("probation</span>"));
  one.row.ahead = {2, 49, 1, 6, ""};
  page.lines = {one};
  CHECK_THAT(partitions_html(frame(false), page),
             ContainsSubstring("retrying, 6 failed attempts</span>"));
}

TEST_CASE("a lag is of one look, also when its row has passed the end of the log since") {
  auto one = line(PartitionState::kRunning);
  one.course.end = 40;
  one.course.lag = 5;
  one.course.at = pawl::ledger::Instant(std::chrono::milliseconds(1767225600000));
  PartitionsPage all;
  all.lines = {one};
  CHECK_THAT(partitions_html(frame(false), all), ContainsSubstring("<td class=\"number\">5</td>"));
  PartitionPage page;
  page.line = one;
  CHECK_THAT(partition_html(frame(false), page),
             ContainsSubstring("Lag</dt><dd>5 at <time datetime=\"2026-01-01T00:00:00Z\">"
                               "2026-01-01 00:00:00 UTC</time>") &&
                 ContainsSubstring("End</dt><dd>40 at <time") &&
                 ContainsSubstring("Offset</dt><dd>42<"));
}

TEST_CASE("a page shows how old it is, and is refreshed only if a GET asked for it") {
  auto by_get = frame(true);
  by_get.asked_by_get = true;
  const auto got = history_html(by_get, {});
  CHECK_THAT(got, ContainsSubstring("<main id=\"main\" tabindex=\"-1\" data-refresh=\"10\">") &&
                      ContainsSubstring("data-live>Generated at <time") &&
                      ContainsSubstring("This page does not refresh automatically."));
  CHECK_THAT(history_html(frame(true), {}),
             ContainsSubstring("data-live") && !ContainsSubstring("data-refresh"));
  CHECK_THAT(sign_in_html(by_get, "anna"),
             !ContainsSubstring("data-live") && !ContainsSubstring("data-refresh"));
}

TEST_CASE("what is searched of dead letters") {
  std::string problem;
  auto filter = letter_filter({{"topic", "t"},
                               {"partition", "3"},
                               {"status", "all"},
                               {"record_key", "k"},
                               {"sqlstate", "23"}},
                              true, problem);
  CHECK(problem == "");
  CHECK(filter.topic == "t");
  CHECK(filter.partition == 3);
  CHECK(filter.statuses.size() == 5);
  CHECK(filter.record_key_hash->size() == 32);
  CHECK(filter.sqlstate == "23");
  filter = letter_filter({{"partition", "x"}, {"status", "'; DROP"}}, false, problem);
  CHECK_FALSE(filter.partition);
  CHECK(filter.statuses == std::vector<std::string>{"scheduled", "dead", "parked"});
  CHECK_THAT(problem, ContainsSubstring("\"x\" is not a partition number"));
  CHECK_FALSE(place_after({{"after_offset", "1"}}));
  CHECK(place_after({{"after_topic", "t"},
                     {"after_partition", "1"},
                     {"after_offset", "2"},
                     {"after_id", "3"}})
            ->offset == 2);
}

TEST_CASE("the history shows the next offset before and after a change") {
  const std::vector<pawl::ledger::HistoryRow> rows{
      {1, {"orders", 3}, "", "offsets set", 41, 17, "", "role"},
      {2, {"orders", 3}, "", "first assignment", std::nullopt, 0, "", "role"}};
  const auto html = history_html(frame(true), {rows, false});
  CHECK_THAT(html, ContainsSubstring(">41<") && ContainsSubstring(">17<") &&
                       ContainsSubstring(">0<") && !ContainsSubstring(">42<"));
}

TEST_CASE("the history names who acted, and by what") {
  CHECK(history_reason("anna", "the account is there") ==
        "by anna (dashboard): the account is there");
}
