#include "engine/remote_services.hpp"

#include <memory>
#include <utility>

#include "prelude.hpp"

using pawl::engine::FailedCall;
using pawl::engine::judge;
using pawl::engine::OutageVerdict;
using pawl::engine::RemoteServices;

namespace {

using Milliseconds = RemoteServices::Milliseconds;
using Turn = RemoteServices::Turn;

const RemoteServices::Clock::time_point kStart = RemoteServices::Clock::time_point() + 1000h;
const std::string kApi = "https://api.example";

RemoteServices::Place place(std::int64_t offset, int partition = 0) {
  return {{"payments", partition}, offset};
}

std::optional<Turn> turn(RemoteServices& services, std::int64_t offset,
                         RemoteServices::Clock::time_point now, int partition = 0) {
  auto asked = services.ask(kApi, place(offset, partition), now);
  if (std::holds_alternative<Turn>(asked))
    return std::get<Turn>(std::move(asked));
  return std::nullopt;
}

std::optional<Milliseconds> fails(Turn& turn, RemoteServices::Clock::time_point now,
                                  bool by_status = false, Milliseconds retry_after = {}) {
  FailedCall call;
  call.by_status = by_status;
  call.retry_for = 300s;
  return turn.failed(call, "no", retry_after, now);
}

}  // namespace

TEST_CASE("whose fault a call is that did nothing") {
  struct Row {
    bool by_status;
    bool others_succeed;
    Milliseconds failing_for;
    OutageVerdict verdict;
  };
  const std::vector<Row> rows{
      {false, false, 0s, OutageVerdict::kServiceAway},
      {false, false, 1h, OutageVerdict::kServiceAway},
      {false, true, 1h, OutageVerdict::kServiceAway},
      {true, false, 0s, OutageVerdict::kServiceAway},
      {true, false, 1h, OutageVerdict::kServiceAway},
      {true, true, 0s, OutageVerdict::kMessageWaits},
      {true, true, 299999ms, OutageVerdict::kMessageWaits},
      {true, true, 300s, OutageVerdict::kMessageAtFault},
  };
  for (const auto& row : rows) {
    CAPTURE(row.by_status, row.others_succeed, row.failing_for.count());
    CHECK(judge({row.by_status, row.others_succeed, row.failing_for, 300s}) == row.verdict);
  }
}

TEST_CASE("while a service is away one call at a time probes it, and all others wait") {
  const auto services = std::make_shared<RemoteServices>();
  auto first = turn(*services, 1, kStart);
  auto second = turn(*services, 2, kStart);
  REQUIRE((first && second));
  const auto wait = fails(*first, kStart);
  REQUIRE(wait);
  CHECK(*wait <= RemoteServices::kFirstPause);
  // Together they are one.
  CHECK(fails(*second, kStart + 1ms));
  CHECK_FALSE(turn(*services, 3, kStart + 1ms));
  auto away = services->away(kStart + 1ms);
  REQUIRE(away.size() == 1);
  CHECK(away[0].remote == kApi);
  CHECK(away[0].why == "no");
  CHECK(away[0].waiting.at({"payments", 0}) == 3);

  // The one that failed last leaves the probe to others.
  const auto due = kStart + RemoteServices::kFirstPause;
  CHECK_FALSE(turn(*services, 2, due));
  auto probe = turn(*services, 1, due);
  REQUIRE(probe);
  CHECK_FALSE(turn(*services, 3, due));
  probe->responded(false);
  CHECK(services->away(due).empty());
  CHECK(turn(*services, 3, due));
}

TEST_CASE("the pauses between probes grow up to a limit, or are as long as the service asks") {
  const auto services = std::make_shared<RemoteServices>();
  auto now = kStart;
  auto longest = 0ms;
  for (int i = 0; i < 12; ++i) {
    auto probe = turn(*services, 1, now);
    REQUIRE(probe);
    const auto wait = fails(*probe, now);
    REQUIRE(wait);
    CHECK(*wait <= RemoteServices::kLongestPause);
    longest = std::max(longest, *wait);
    now += *wait;
  }
  CHECK(longest > RemoteServices::kFirstPause);
  auto probe = turn(*services, 1, now);
  REQUIRE(probe);
  // It asks in between, for another call may have got a response.
  CHECK(fails(*probe, now, true, 60s) == RemoteServices::kLongestPause);
  CHECK_FALSE(turn(*services, 1, now + 59s));
  CHECK(turn(*services, 1, now + 60s));
}

TEST_CASE("a turn that is not used leaves the probe to another message") {
  const auto services = std::make_shared<RemoteServices>();
  auto call = turn(*services, 1, kStart);
  REQUIRE(call);
  CHECK(fails(*call, kStart));
  const auto due = kStart + RemoteServices::kFirstPause;
  {
    const auto unused = turn(*services, 2, due);
    REQUIRE(unused);
    CHECK_FALSE(turn(*services, 3, due));
  }
  CHECK(turn(*services, 3, due));
}

TEST_CASE(
    "a message that a status refuses while others succeed waits alone, and then is at fault") {
  const auto services = std::make_shared<RemoteServices>();
  auto poison = turn(*services, 1, kStart);
  REQUIRE(poison);
  REQUIRE(fails(*poison, kStart, true));
  CHECK(services->away(kStart).size() == 1);
  auto now = kStart + RemoteServices::kFirstPause;
  auto other = turn(*services, 2, now);
  REQUIRE(other);
  other->responded(true);

  poison = turn(*services, 1, now);
  REQUIRE(poison);
  CHECK(fails(*poison, now, true));
  CHECK(services->away(now).empty());
  now = kStart + 299s;
  poison = turn(*services, 1, now);
  REQUIRE(poison);
  CHECK(fails(*poison, now, true));
  now = kStart + 300s;
  poison = turn(*services, 1, now);
  REQUIRE(poison);
  CHECK_FALSE(fails(*poison, now, true));
  CHECK(services->away(now).empty());
}

TEST_CASE("a service that no message asks for any more is not away") {
  const auto services = std::make_shared<RemoteServices>();
  auto call = turn(*services, 1, kStart, 3);
  REQUIRE(call);
  CHECK(fails(*call, kStart));
  CHECK(services->away(kStart + 30s).at(0).waiting.at({"payments", 3}) == 1);
  CHECK(services->away(kStart + 60s).empty());
}
