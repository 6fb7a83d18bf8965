#include "message/topic_entries.hpp"

#include "prelude.hpp"

using pawl::message::ambiguous_topic_text;
using pawl::message::is_topic_pattern;
using pawl::message::problem_of_topic_pattern;
using pawl::message::TopicEntries;
using pawl::message::TopicPattern;

TEST_CASE("a pattern means the topics whose names begin with it") {
  struct Row {
    std::string pattern;
    std::string topic;
    bool matches;
  };
  const std::vector<Row> rows{
      {"^orders\\..*", "orders.eu", true},
      {"^orders\\..*", "orders", false},
      {"^orders\\..*", "ordersXeu", false},
      {"^orders\\..*", "my.orders.eu", false},
      {"^orders", "orders-late", true},
      {"^orders$", "orders-late", false},
      {"^orders$", "orders", true},
      {"^(eu|us)-[0-9]+$", "us-17", true},
      {"^(eu|us)-[0-9]+$", "us-x", false},
      {"^a|b", "b-side", true},
      {"^a|b", "xb", false},
      {"^", "anything", true},
      {"^(a+)+$", std::string(248, 'a') + "b", false},
  };
  for (const auto& row : rows) {
    CAPTURE(row.pattern, row.topic);
    CHECK(TopicPattern(row.pattern).matches(row.topic) == row.matches);
  }
}

TEST_CASE("what is no pattern is said, with what to write instead") {
  struct Row {
    std::string pattern;
    std::string what;
  };
  const std::vector<Row> rows{
      {"^orders\\..*", ""},
      {"^[0-9]{2}\\\\$", ""},
      {"orders", "is not a pattern"},
      {"^(orders", "Unmatched ( or \\("},
      {"^[a-", "Unmatched [, [^, [:, [., or [="},
      {"^orders-\\d+", "contains \\d, which has no meaning in a POSIX extended regular expression"},
      {"^(a)\\1", "contains \\1, which has no meaning in a POSIX extended regular expression"},
      {"^a\0b"s, "contains a NUL character"},
  };
  for (const auto& row : rows) {
    CAPTURE(row.pattern);
    const auto problem = problem_of_topic_pattern(row.pattern);
    CHECK(problem.what == row.what);
    CHECK((problem.what.empty() || !problem.fix.empty()));
    if (!row.what.empty())
      CHECK_THROWS_AS(TopicPattern(row.pattern), std::invalid_argument);
  }
  CHECK(is_topic_pattern("^a"));
  CHECK_FALSE(is_topic_pattern("a^"));
  CHECK_FALSE(is_topic_pattern(""));
}

TEST_CASE("a topic belongs to its name, else to the only pattern that means it") {
  const TopicEntries entries(
      {"orders.eu", "^orders\\.", "plain", "^orders\\.u", "^pay", "orders.eu"}, {"pay-letters"});
  struct Row {
    std::string topic;
    std::string entry;
  };
  const std::vector<Row> rows{
      {"orders.eu", "orders.eu"},
      {"orders.ap", "^orders\\."},
      {"plain", "plain"},
      {"orders.us", ""},
      {"payments", "^pay"},
      {"pay-letters", ""},
      {"other", ""},
      {"", ""},
  };
  for (const auto& row : rows) {
    CAPTURE(row.topic);
    CHECK(entries.entry_of(row.topic) == row.entry);
  }
  const auto chosen =
      entries.choose({"payments", "orders.us", "other", "orders.ap", "pay-letters", "orders.eu"});
  CHECK(chosen.topics == std::vector<std::string>{"orders.eu", "plain", "orders.ap", "payments"});
  REQUIRE(chosen.ambiguous.size() == 1);
  CHECK(
      ambiguous_topic_text("orders.us", chosen.ambiguous.at("orders.us"))
          .starts_with("topic orders.us matches more than one pattern (^orders\\., ^orders\\.u)"));
}

TEST_CASE("no pattern means an internal topic, but a name does") {
  CHECK(TopicEntries({"^"}).entry_of("__consumer_offsets").empty());
  CHECK(TopicEntries({"^__"}).choose({"__consumer_offsets"}).topics.empty());
  CHECK(TopicEntries({"^", "__mine"}).entry_of("__mine") == "__mine");
  CHECK(TopicEntries({"^letters", "letters"}, {"letters"}).entry_of("letters") == "letters");
}
