#include "outbox/lateness.hpp"

#include "prelude.hpp"

using namespace pawl::engine;
using pawl::ledger::Instant;
using pawl::ledger::LateTold;
using pawl::ledger::OutboxLook;

namespace {

const Instant kNow{1'800'000'000'000ms};

}  // namespace

TEST_CASE("an outbox is late when its oldest message waits for longer than the bound") {
  using pawl::ledger::outbox_is_late;
  CHECK(outbox_is_late(kNow - 5001ms, kNow, 5s));
  CHECK_FALSE(outbox_is_late(kNow - 5000ms, kNow, 5s));
  CHECK_FALSE(outbox_is_late(std::nullopt, kNow, 5s));
  CHECK_FALSE(outbox_is_late(kNow - 1000h, kNow, 0s));
}

TEST_CASE("that messages wait for too long is told once, and its end to whom it was told") {
  struct Row {
    LateTold told;
    bool late;
    bool alerts;
    LateNews news;
    LateTold after;  ///< what was told, once the news is out
  };
  using enum LateTold;
  const std::vector<Row> rows{
      {kNothing, false, false, LateNews::kNone, kNothing},
      {kNothing, false, true, LateNews::kNone, kNothing},
      {kNothing, true, false, LateNews::kLate, kLogged},
      {kNothing, true, true, LateNews::kLate, kAlerted},
      {kLogged, true, false, LateNews::kNone, kLogged},
      {kLogged, true, true, LateNews::kLate, kAlerted},
      {kLogged, false, false, LateNews::kCaughtUp, kNothing},
      {kLogged, false, true, LateNews::kCaughtUp, kNothing},
      {kAlerted, true, true, LateNews::kNone, kAlerted},
      {kAlerted, false, true, LateNews::kCaughtUp, kNothing},
      // A process without alerts leaves what an alert has told to one that has some.
      {kAlerted, true, false, LateNews::kNone, kAlerted},
      {kAlerted, false, false, LateNews::kNone, kAlerted},
  };
  for (const auto& row : rows) {
    CAPTURE(static_cast<int>(row.told), row.late, row.alerts);
    const auto news = late_news(row.told, row.late, row.alerts);
    CHECK(news == row.news);
    CHECK((news == LateNews::kNone ? row.told : told_after(news, row.alerts)) == row.after);
  }
}

TEST_CASE("what is told of a late outbox says for how long, and whether anybody publishes") {
  OutboxLook look;
  look.oldest = kNow - 10min;
  look.at = kNow;
  CHECK_THAT(late_text({}, look, 5min),
             ContainsSubstring("waits for 10 min (outbox.alert_age = 5m)") &&
                 ContainsSubstring("no process publishes") &&
                 ContainsSubstring("`pawl relay --config FILE`"));
  look.relayed = true;
  CHECK_THAT(late_text({}, look, 5min),
             !ContainsSubstring("no process publishes") &&
                 ContainsSubstring("The log of that process has the cause"));
}
