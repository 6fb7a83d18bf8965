#include "engine/leased_call.hpp"
#include "engine/make_leases.hpp"
#include "prelude.hpp"

using pawl::OnUnknown;
using pawl::engine::Beginning;
using pawl::engine::beginning_of;
using namespace std::chrono_literals;

TEST_CASE("how an attempt begins") {
  struct Row {
    OnUnknown on_unknown;
    std::optional<std::chrono::milliseconds> unknown_for;
    std::chrono::milliseconds remote_memory;
    Beginning expected;
  };
  const std::vector<Row> rows{
      {OnUnknown::kCall, std::nullopt, 0ms, Beginning::kCall},
      {OnUnknown::kReconcile, std::nullopt, 1s, Beginning::kCall},
      {OnUnknown::kHalt, std::nullopt, 0ms, Beginning::kCall},
      {OnUnknown::kCall, 0ms, 0ms, Beginning::kCall},
      {OnUnknown::kCall, 24h, 0ms, Beginning::kCall},
      {OnUnknown::kCall, 24h, 24h, Beginning::kCall},
      {OnUnknown::kCall, 24h + 1ms, 24h, Beginning::kHalt},
      {OnUnknown::kReconcile, 25h, 24h, Beginning::kReconcile},
      {OnUnknown::kReconcile, 0ms, 0ms, Beginning::kReconcile},
      {OnUnknown::kHalt, 0ms, 24h, Beginning::kHalt},
  };
  for (std::size_t i = 0; i < rows.size(); ++i) {
    CAPTURE(i);
    CHECK(beginning_of(rows[i].on_unknown, rows[i].unknown_for, rows[i].remote_memory) ==
          rows[i].expected);
  }
}

TEST_CASE("a call whose outcome is known leaves the probe of its endpoint to others") {
  using pawl::engine::BootClock;
  using pawl::engine::LeasedCall;
  using pawl::engine::RemoteServices;
  using Turn = RemoteServices::Turn;
  const auto start = RemoteServices::Clock::time_point() + 1000h;
  const auto services = std::make_shared<RemoteServices>();
  const auto ask = [&](std::int64_t offset, RemoteServices::Clock::time_point now) {
    return services->ask("https://api.example", {{"payments", 0}, offset}, now);
  };
  auto failed = std::get<Turn>(ask(1, start));
  REQUIRE(failed.failed({}, "no", 0ms, start));
  const auto due = start + RemoteServices::kFirstPause;
  auto probe = std::get<Turn>(ask(2, due));
  REQUIRE_FALSE(std::holds_alternative<Turn>(ask(3, due)));

  const pawl::Options options;
  const pawl::engine::Observers observers({});
  pawl::engine::LeaseKeeper keeper(options, observers, pawl::engine::make_leases(options), "me");
  const pawl::handlers::Binding binding;
  pawl::ledger::LeaseAnswer answer;
  answer.how = pawl::ledger::LeaseAnswer::How::kDone;
  const LeasedCall call(
      keeper, binding, "key", {"payments", 0}, {}, answer,
      std::make_shared<pawl::engine::HeldLease>(pawl::ledger::KeyLease{}, BootClock::now()),
      std::move(probe));
  CHECK(call.outcome() == LeasedCall::Outcome::kDone);
  CHECK(std::holds_alternative<Turn>(ask(3, due)));
}
