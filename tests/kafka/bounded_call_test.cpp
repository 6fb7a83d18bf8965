#include "kafka/bounded_call.hpp"

#include <atomic>
#include <future>
#include <memory>
#include <stdexcept>
#include <thread>

#include "prelude.hpp"

using pawl::kafka::call_within;
using pawl::kafka::calls_in_progress;

namespace {

bool has_time() {
  return false;
}

bool out_of_time() {
  return true;
}

}  // namespace

TEST_CASE("a call that returns in time returns its result, which may be movable only") {
  auto result = call_within([] { return std::make_unique<int>(7); }, has_time);
  REQUIRE(result);
  CHECK(**result == 7);
  CHECK(calls_in_progress() == 0);
}

TEST_CASE("a call runs on a thread of its own") {
  CHECK(call_within([] { return std::this_thread::get_id(); }, has_time) !=
        std::this_thread::get_id());
}

TEST_CASE("an exception of a call reaches the thread that waits for it") {
  const auto call = []() -> int { throw std::runtime_error("refused"); };
  CHECK_THROWS_WITH(call_within(call, has_time), "refused");
  CHECK(calls_in_progress() == 0);
}

TEST_CASE("a call that is out of time is left behind with what it owns until it returns") {
  std::promise<void> released;
  auto owned = std::make_shared<int>(7);
  const std::weak_ptr<int> seen = owned;
  auto call = [go = released.get_future().share(), mine = std::move(owned)] {
    go.wait();
    return *mine;
  };
  const auto result = call_within(std::move(call), out_of_time);
  CHECK(!result);
  CHECK(calls_in_progress() == 1);
  CHECK(!seen.expired());

  released.set_value();
  pawl::testing::wait_until([] { return calls_in_progress() == 0; }, 60s, "the call to return");
  CHECK(seen.expired());
}

TEST_CASE("the time of a call is checked again and again until the call returns") {
  std::promise<void> released;
  auto call = [go = released.get_future().share()] {
    go.wait();
    return true;
  };
  // The third check lets the call return.
  std::atomic<int> checks = 0;
  CHECK(call_within(call, [&] {
          if (++checks == 3)
            released.set_value();
          return false;
        }) == true);
  CHECK(checks >= 3);
}
