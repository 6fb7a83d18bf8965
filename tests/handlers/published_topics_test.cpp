#include "handlers/published_topics.hpp"

#include "prelude.hpp"

using namespace pawl::handlers;

TEST_CASE("topics that pawl.publish is given as literals are found, and no others") {
  struct Row {
    std::string sql;
    std::vector<std::string> topics;
  };
  const std::vector<Row> rows{
      {"SELECT pawl.publish('t', 'k', 'v')", {"t"}},
      {"SELECT pawl . PUBLISH ( /* where */ 'it''s' , {/k})", {"it's"}},
      {"SELECT pawl.publish('t'::text, {/k}, {value})", {"t"}},
      {"SELECT pawl.publish(topic => 't', key => 'k'::text, value => f('a', 'b'))", {"t"}},
      {"SELECT pawl.publish(key => 'k', value => 'v', topic := 't')", {"t"}},
      {"SELECT pawl.publish('a', x, y), \"pawl\".\"publish\"('b', x, y)", {"a", "b"}},
      {"WITH p AS (SELECT pawl.publish('a', f(1, 'n'), ARRAY['x', 'y']) FROM t) SELECT", {"a"}},
      // Computed, or not of pawl.
      {"SELECT pawl.publish('t' || {/x}, 'k', 'v')", {}},
      {"SELECT pawl.publish({/topic}, 'k', 'v')", {}},
      {"SELECT pawl.publish(E't', 'k', 'v')", {}},
      {"SELECT pawl.publish(lower('t'), 'k', 'v')", {}},
      {"SELECT other.publish('t', 'k', 'v'), publish('t', 'k', 'v')", {}},
      {"SELECT 'pawl.publish(''t'')' -- pawl.publish('t')", {}},
      {"SELECT pawl.publish", {}},
      {"SELECT pawl.publish('t'", {}},
  };
  for (const auto& row : rows) {
    CAPTURE(row.sql);
    CHECK(published_topics(row.sql, "pawl") == row.topics);
  }
  CHECK(published_topics("SELECT \"My\".publish('t', 'k', 'v')", "\"My\"") ==
        std::vector<std::string>{"t"});
}

TEST_CASE("what is a topic's name is what pawl.publish takes for one") {
  for (const auto* name : {"a", "Payments.booked_2-x", "..."})
    CHECK(is_topic_name(name));
  CHECK(is_topic_name(std::string(249, 'a')));
  for (const auto* name : {"", ".", "..", "a b", "ü", "a/b", "a\n"})
    CHECK_FALSE(is_topic_name(name));
  CHECK_FALSE(is_topic_name(std::string(250, 'a')));
}
