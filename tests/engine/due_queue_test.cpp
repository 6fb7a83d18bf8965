#include "dead_letters/due_queue.hpp"

#include "prelude.hpp"

namespace {

using pawl::engine::DueQueue;
using pawl::ledger::DueLetter;

DueLetter letter(std::int64_t id, std::optional<std::string> key, const std::string& topic = "t") {
  DueLetter due;
  due.id = id;
  due.partition = {topic, 0};
  due.record_key_hash = std::move(key);
  return due;
}

/// The number of the one that is taken now; 0: none.
std::int64_t taken(DueQueue& queue, std::optional<std::int64_t> kept = {}) {
  const auto due = queue.take(0ms, kept);
  return due ? due->id : 0;
}

}  // namespace

TEST_CASE("letters of one record key are in hand one at a time, others beside them") {
  DueQueue queue;
  CHECK(queue.offer({letter(1, "a"), letter(2, "a"), letter(3, "b"), letter(4, {}), letter(5, {}),
                     letter(6, "a", "other")}) == 6);
  CHECK(taken(queue) == 1);
  CHECK(taken(queue) == 3);
  CHECK(taken(queue) == 4);
  CHECK(taken(queue) == 5);
  CHECK_FALSE(queue.wait_until_taken(0ms));
  CHECK(taken(queue) == 6);
  CHECK(taken(queue) == 0);
  // Nothing more can be taken, although one waits.
  CHECK(queue.wait_until_taken(0ms));
  CHECK(queue.size() == 6);
  queue.done(letter(1, "a"));
  CHECK(taken(queue) == 2);
}

TEST_CASE("a letter that waits or is in hand is not added again") {
  DueQueue queue;
  CHECK(queue.offer({letter(1, "a"), letter(2, "b")}) == 2);
  CHECK(taken(queue) == 1);
  CHECK(queue.offer({letter(1, "a"), letter(2, "b"), letter(3, "c")}) == 1);
  queue.done(letter(1, "a"));
  CHECK(queue.offer({letter(1, "a")}) == 1);
}

TEST_CASE("a letter whose call is kept goes to its thread only, until that lets go of it") {
  DueQueue queue;
  queue.offer({letter(1, "a")});
  CHECK(taken(queue) == 1);
  queue.done(letter(1, "a"), true);
  queue.offer({letter(1, "a"), letter(2, "b")});
  CHECK(taken(queue) == 2);
  CHECK(taken(queue) == 0);
  CHECK(taken(queue, 1) == 1);
  queue.done(letter(1, "a"), true);
  queue.offer({letter(1, "a")});
  CHECK(taken(queue) == 0);
  queue.release(1);
  CHECK(taken(queue) == 1);
}

TEST_CASE("at the end nothing is taken or added any more") {
  DueQueue queue;
  queue.offer({letter(1, "a")});
  queue.end();
  CHECK(queue.ending());
  CHECK(taken(queue) == 0);
  CHECK(queue.offer({letter(2, "b")}) == 0);
}
