#include "engine/mailbox.hpp"

#include <catch2/catch_test_macros.hpp>
#include <memory>
#include <string>
#include <thread>

using namespace std::chrono_literals;
using pawl::engine::Mailbox;

TEST_CASE("commands run in their order, and what one of them posts runs in the next round") {
  Mailbox mailbox;
  std::string ran;
  CHECK(mailbox.post([&] {
    ran += "a";
    mailbox.post([&] { ran += "c"; });
  }));
  CHECK(mailbox.post([&] { ran += "b"; }));
  CHECK(mailbox.has_mail());
  mailbox.serve();
  CHECK(ran == "ab");
  CHECK(mailbox.has_mail());
  mailbox.serve();
  CHECK(ran == "abc");
  CHECK_FALSE(mailbox.has_mail());
}

TEST_CASE("closing serves what was posted, and refuses what comes later with all that it holds") {
  Mailbox mailbox;
  int ran = 0;
  mailbox.post([&] { ++ran; });
  mailbox.close();
  CHECK(ran == 1);
  const auto held = std::make_shared<int>(0);
  CHECK_FALSE(mailbox.post([held, &ran] { ++ran; }));
  CHECK(held.use_count() == 1);
  mailbox.serve();
  CHECK(ran == 1);
}

// Each of these waits would last for hours, were it not for the word.
TEST_CASE("a wait ends with a command and with a call, also with one that came before it") {
  const auto late = Mailbox::Clock::now() + 10h;
  Mailbox mailbox;
  mailbox.wake();
  mailbox.wait(late);
  mailbox.serve();
  mailbox.post([] {});
  mailbox.wait(late);
  mailbox.serve();
  std::thread other([&] { mailbox.wake(); });
  mailbox.wait(late);
  other.join();
  // A round of serving forgets the call.
  mailbox.serve();
  mailbox.wait(Mailbox::Clock::now());
  CHECK_FALSE(mailbox.has_mail());
}
