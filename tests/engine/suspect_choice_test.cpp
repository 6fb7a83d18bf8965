#include "engine/suspect_choice.hpp"

#include <map>
#include <string>
#include <vector>

#include "prelude.hpp"

namespace {

using pawl::engine::SuspectChoice;
using pawl::handlers::Binding;
using pawl::handlers::Liability;

/// A message as a word: its handler, and behind a slash its order key.
///   sql   C++ or SQL, one at a time     many  the same, with concurrency = 8
///   code  a call of C++                 http  a call of pawl's
///   both  a call of C++, with code that runs without its lease, and concurrency = 2
SuspectChoice::Candidate candidate(const std::string& word, std::int64_t offset) {
  static const std::map<std::string, Binding> kBindings = [] {
    std::map<std::string, Binding> bindings;
    for (const auto* name : {"sql", "many", "code", "http", "both"})
      bindings[name];
    return bindings;
  }();
  const auto slash = word.find('/');
  const auto handler = word.substr(0, slash);
  SuspectChoice::Candidate candidate;
  candidate.offset = offset;
  candidate.handler = &kBindings.at(handler);
  candidate.calls = handler != "sql" && handler != "many";
  candidate.lease_tells = handler == "code" || handler == "both";
  candidate.liability = handler == "http"   ? Liability::kNone
                        : handler == "code" ? Liability::kCall
                                            : Liability::kAny;
  candidate.concurrency = handler == "sql" ? 1 : handler == "both" ? 2 : 8;
  if (slash != std::string::npos)
    candidate.order_key = word.substr(slash + 1);
  return candidate;
}

/// Of each message a letter: yes, no, if it was called, and a point where it need not be asked.
std::string answers(SuspectChoice choice, const std::vector<std::string>& words) {
  std::string text;
  for (std::size_t i = 0; i < words.size(); ++i) {
    const auto offset = static_cast<std::int64_t>(i);
    if (choice.knows(offset)) {
      text += '.';
      continue;
    }
    switch (choice.ask(candidate(words[i], offset))) {
      case SuspectChoice::Answer::kNo:
        text += 'n';
        break;
      case SuspectChoice::Answer::kYes:
        text += 'y';
        break;
      case SuspectChoice::Answer::kIfCalled:
        text += 'c';
        break;
    }
  }
  return text;
}

}  // namespace

TEST_CASE("which messages may be why a process ended") {
  struct Row {
    const char* what;
    SuspectChoice::Limits limits;
    std::vector<std::string> messages;
    std::string expected;
  };
  const SuspectChoice::Limits alone{.end = 100};
  const SuspectChoice::Limits pipeline{.end = 100, .at_once = 3};
  const SuspectChoice::Limits side{.end = 100, .at_once = 3, .ahead = 10, .side_by_side = true};
  const SuspectChoice::Limits side_calls{
      .end = 100, .at_once = 3, .ahead = 10, .side_by_side = true, .calls_with_code = true};
  const auto row = GENERATE_COPY(
      Row{"in the log's order the next one", alone, {"sql", "sql"}, "y."},
      Row{"a pipeline or a batch", pipeline, {"sql", "sql", "sql", "sql"}, "yyy."},
      Row{"nothing behind the log's end", {.end = 2, .at_once = 3}, {"sql", "sql", "sql"}, "yyn"},
      Row{"a call of the application, if it was begun", pipeline, {"code", "sql"}, "c."},
      Row{"no call of pawl's", pipeline, {"http", "sql"}, "n."},
      Row{"a call behind others was not begun", pipeline, {"sql", "code", "sql"}, "yn."},
      Row{"as many as there are threads", side, {"many", "many", "many", "many"}, "yyy."},
      Row{"the first of each order key",
          side,
          {"many/a", "many/a", "many/b", "many/a", "many/c", "many/d"},
          "ynyny."},
      Row{"one of a handler without concurrency", side, {"sql", "sql", "many", "many"}, "ynyy"},
      Row{"a message waits behind a call of its key", side, {"http/a", "many/a", "many/b"}, "nny"},
      Row{"no call of pawl's takes the place of others",
          side,
          {"http", "http", "http", "http", "many", "many"},
          "nnnnyy"},
      Row{"calls of the application wherever they are",
          side_calls,
          {"many", "many", "many", "many", "code", "code/a", "code/a"},
          "yyynccn"},
      Row{"by both rules, if it has code for duplicates",
          side_calls,
          {"both", "both", "both", "many", "both"},
          "yycyc"},
      Row{"but not beyond what may be ahead",
          {.end = 100, .at_once = 3, .ahead = 2, .side_by_side = true, .calls_with_code = true},
          {"code", "code", "code"},
          "cc."});
  CAPTURE(row.what);
  CHECK(answers(SuspectChoice(row.limits), row.messages) == row.expected);
}

TEST_CASE("without an unclean hand-over no message is a suspect") {
  SuspectChoice choice;
  CHECK(choice.knows(0));
  CHECK_FALSE(choice.is_going_on());
  CHECK_FALSE(choice.take_end());
}

TEST_CASE("a message that is fetched again is what it was before") {
  SuspectChoice choice({.end = 100, .at_once = 2});
  REQUIRE_FALSE(choice.knows(7));
  CHECK(choice.ask(candidate("sql", 7)) == SuspectChoice::Answer::kYes);
  choice.add(7);
  CHECK(choice.knows(7));
  CHECK(choice.has(7));
  CHECK_FALSE(choice.knows(8));
}

TEST_CASE("probation is over when the last suspect is behind, and that is told once") {
  SuspectChoice choice({.end = 100, .at_once = 2});
  for (const std::int64_t offset : {7, 9}) {
    CHECK(choice.ask(candidate("sql", offset)) == SuspectChoice::Answer::kYes);
    choice.add(offset);
  }
  choice.passed(8);
  CHECK_FALSE(choice.has(7));
  CHECK(choice.has(9));
  CHECK(choice.is_going_on());
  CHECK_FALSE(choice.take_end());
  choice.passed(9);
  CHECK_FALSE(choice.is_going_on());
  CHECK(choice.take_end() == 2U);
  CHECK_FALSE(choice.take_end());
}

TEST_CASE("at the end of the log probation is over") {
  SuspectChoice choice({.end = 100, .at_once = 64});
  CHECK(choice.is_going_on());
  choice.stop_asking();
  CHECK(choice.take_end() == 0U);
}

TEST_CASE("a suspect that may have ended a process runs before the others") {
  using Answer = SuspectChoice::Answer;
  SuspectChoice choice({.end = 9, .at_once = 8, .ahead = 8, .side_by_side = true});
  choice.go_first(2, false);
  for (const std::int64_t offset : {0, 1}) {
    REQUIRE(choice.ask(candidate(offset == 0 ? "many/a" : "many/b", offset)) == Answer::kYes);
    choice.add(offset);
  }
  CHECK(choice.waits(0));
  CHECK(choice.waits(1));
  CHECK_FALSE(choice.waits(2));
  SECTION("it is one") {
    REQUIRE(choice.ask(candidate("many/c", 2)) == Answer::kYes);
    choice.add(2);
    CHECK(choice.waits(0));
    SECTION("until it cannot run for too long") {
      choice.give_up_first();
    }
    SECTION("until it was survived and none of its crashes was counted") {
      choice.went_first(2);
      CHECK(choice.has(2));
    }
    SECTION("with counted crashes, until it is finished") {
      choice.go_first(2, true);
      choice.give_up_first();
      CHECK(choice.waits(0));
      choice.finished(2);
    }
  }
  SECTION("it is none") {
    REQUIRE(choice.ask(candidate("many/a", 2)) == Answer::kNo);
  }
  SECTION("it is finished already") {
    choice.finished(2);
  }
  SECTION("it is behind") {
    choice.passed(2);
  }
  SECTION("it does not come") {
    choice.give_up_first();
  }
  CHECK_FALSE(choice.waits(0));
}
