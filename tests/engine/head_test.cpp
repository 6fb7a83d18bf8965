#include "engine/head.hpp"

#include <catch2/catch_test_macros.hpp>

using pawl::engine::Head;

TEST_CASE("whatever is known of a message makes it go alone") {
  CHECK(Head{}.is_plain());
  CHECK_FALSE(Head{.attempts = 1}.is_plain());
  CHECK_FALSE(Head{.one_try_only = true}.is_plain());
  CHECK_FALSE(Head{.row_halted = true}.is_plain());
  CHECK_FALSE(Head{.broke_connection = 7}.is_plain());
  // New statements are prepared for whatever comes next.
  CHECK(Head{.prepared_anew_for = 7}.is_plain());
}

TEST_CASE("a message that had failed is the culprit of what failed with it") {
  CHECK_FALSE(Head{}.had_failed());
  CHECK(Head{.attempts = 1}.had_failed());
  CHECK(Head{.row_halted = true}.had_failed());
  CHECK(Head{.prepared_anew_for = 7}.had_failed());
}

TEST_CASE("behind a message everything begins anew") {
  Head head{.attempts = 3,
            .broken_connections = 2,
            .one_try_only = true,
            .row_halted = true,
            .prepared_anew_for = 7,
            .broke_connection = 7};
  head.pass();
  CHECK(head.attempts == 0);
  CHECK(head.broken_connections == 0);
  CHECK_FALSE(head.one_try_only);
  CHECK_FALSE(head.had_failed());
  CHECK_FALSE(head.broke_connection);
}

TEST_CASE("an operator who begins anew does not hide that a connection broke") {
  Head head{.attempts = 3, .broken_connections = 2, .broke_connection = 7};
  head.forget_attempts();
  CHECK(head.attempts == 0);
  CHECK(head.broken_connections == 0);
  CHECK(head.broke_connection == 7);
}
