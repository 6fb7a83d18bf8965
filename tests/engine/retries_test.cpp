#include "engine/retries.hpp"

#include "engine/set_aside.hpp"
#include "prelude.hpp"

using namespace pawl::engine;
using std::chrono::milliseconds;

namespace {

pawl::FailureOptions options(milliseconds retry_for, std::uint32_t max_attempts,
                             milliseconds initial = 100ms, milliseconds longest = 30s) {
  pawl::FailureOptions options;
  options.retry_for = retry_for;
  options.max_attempts = max_attempts;
  options.retry_initial = initial;
  options.retry_max = longest;
  return options;
}

}  // namespace

TEST_CASE("waits double from the first to the longest, by the attempts alone") {
  const auto usual = options(5min, 0);
  CHECK(longest_wait(usual, 1) == 100ms);
  CHECK(longest_wait(usual, 2) == 200ms);
  CHECK(longest_wait(usual, 9) == 25600ms);
  CHECK(longest_wait(usual, 10) == 30s);
  CHECK(longest_wait(usual, 4'000'000'000U) == 30s);
  for (int i = 0; i < 100; ++i) {
    CHECK(wait_before_retry(usual, 10) >= 7500ms);
    CHECK(wait_before_retry(usual, 10) <= 30s);
  }
}

TEST_CASE("by default a message is tried for minutes, and the longest wait is reached") {
  const pawl::FailureOptions usual;
  const auto attempts = attempts_allowed(usual);
  CHECK(attempts == 25);
  milliseconds mean{0};
  for (std::uint32_t n = 1; n < attempts; ++n)
    mean += longest_wait(usual, n) * 5 / 8;
  CHECK(mean >= 5min);
  CHECK(mean < 6min);
  CHECK(longest_wait(usual, attempts - 1) == usual.retry_max);
}

TEST_CASE("retry_for and max_attempts each bound the attempts of a message") {
  CHECK(attempts_allowed(options(0s, 0)) == 1);
  CHECK(attempts_allowed(options(0s, 7)) == 1);
  CHECK(attempts_allowed(options(1ms, 0)) == 2);
  CHECK(attempts_allowed(options(5min, 1)) == 1);
  CHECK(attempts_allowed(options(5min, 3)) == 3);
  CHECK(attempts_allowed(options(5min, 1000)) == 25);
  CHECK(attempts_allowed(options(900ms, 0)) == 5);
  CHECK(attempts_allowed(options(1h, 0, 1s, 1s)) == 5761);
  CHECK(attempts_allowed(options(24h * 7, 0, 1ms, 1ms)) > 900'000'000U);
}

TEST_CASE("the event of a failed attempt has its number, and what follows") {
  struct Row {
    Action::What what;
    std::uint32_t attempts;
    std::vector<std::pair<std::string_view, std::int64_t>> fields;
    bool is_final;
  };
  const auto policy = options(5min, 7);
  for (const auto& row :
       {Row{Action::What::kRetry, 3, {{"max_attempts", 7}, {"retry_in_ms", 250}}, false},
        Row{Action::What::kSetAside, 7, {{"max_attempts", 7}}, true},
        Row{Action::What::kHaltAtMessage, 1, {{"max_attempts", 7}}, true},
        // It is retried, whatever the count.
        Row{Action::What::kHaltProgram, 0, {}, true}, Row{Action::What::kTryAgain, 0, {}, false}}) {
    Attempt attempt;
    attempt.failure.text = "no such account";
    attempt.failure.sqlstate = "23503";
    attempt.failure.detail = "Key (id)=(a)";
    attempt.failure.retry_after = 250ms;
    int events = 0;
    emit_failed(attempt, row.what, row.attempts, policy, false, [&](const pawl::Event& event) {
      ++events;
      CHECK(event.step == pawl::Step::kAttemptFailed);
      CHECK(event.detail == "no such account");
      CHECK(event.sqlstate == "23503");
      CHECK(event.attempt == row.attempts);
      CHECK(event.is_final == row.is_final);
      std::vector<std::pair<std::string_view, std::int64_t>> fields;
      for (const auto& [name, value] : event.fields)
        fields.emplace_back(name, std::get<std::int64_t>(value));
      CHECK(fields == row.fields);
    });
    CHECK(events == 1);
    // No other event has the DETAIL.
    emit_failed(attempt, row.what, row.attempts, policy, true, [&](const pawl::Event& event) {
      CHECK(event.detail == "no such account (Key (id)=(a))");
      CHECK_FALSE(event.is_final);
    });
  }
}
