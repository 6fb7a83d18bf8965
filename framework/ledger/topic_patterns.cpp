#include "ledger/topic_patterns.hpp"

#include <algorithm>
#include <iterator>

#include "ledger/rows.hpp"
#include "message/topic_entries.hpp"
#include "postgres/array_elements.hpp"
#include "postgres/parameters.hpp"
#include "postgres/transaction.hpp"

namespace pawl::ledger {
namespace {

// If several processes start together, the topics that the first one finds apply to all of them.
constexpr const char* kMeet = R"sql(
  INSERT INTO pawl.topic_patterns (consumer_id, pattern, first_topics)
  VALUES ($1::integer, $2, $3::text[]) ON CONFLICT (consumer_id, pattern) DO NOTHING
)sql";

constexpr const char* kMet = R"sql(
  SELECT p.pattern, t.topic FROM pawl.topic_patterns p
    LEFT JOIN LATERAL unnest(p.first_topics) AS t (topic) ON true
   WHERE p.consumer_id = $1::integer
)sql";

}  // namespace

FirstTopics met_patterns(postgres::Session& session, const std::string& schema,
                         ConsumerId consumer) {
  postgres::Parameters parameters;
  parameters.add_integer(static_cast<std::int64_t>(consumer));
  const auto found = session.exec({"", in_schema(kMet, schema)}, parameters);
  const auto* rows = found.get();
  FirstTopics first;
  for (int row = 0; row < PQntuples(rows); ++row) {
    auto& topics = first[text(rows, row, 0)];
    if (!is_null(rows, row, 1))
      topics.insert(text(rows, row, 1));
  }
  return first;
}

std::vector<std::string> there_from_the_first(const std::vector<std::string>& topics,
                                              const FirstTopics& met) {
  std::vector<std::string> found;
  std::ranges::copy_if(topics, std::back_inserter(found), [&](const std::string& topic) {
    return std::ranges::none_of(met, [&](const auto& one) {
      return !one.second.contains(topic) && message::TopicPattern(one.first).matches(topic);
    });
  });
  return found;
}

FirstTopics meet_patterns(postgres::Session& session, const std::string& schema,
                          ConsumerId consumer,
                          const std::map<std::string, std::vector<std::string>>& meant) {
  const postgres::Statement meet{"", in_schema(kMeet, schema)};
  const auto met = met_patterns(session, schema, consumer);
  for (const auto& [pattern, topics] : meant) {
    if (met.contains(pattern))
      continue;
    postgres::ArrayElements elements;
    for (const auto& topic : there_from_the_first(topics, met))
      elements.add_text(topic);
    postgres::Parameters parameters;
    parameters.add_integer(static_cast<std::int64_t>(consumer));
    parameters.add_text(pattern);
    parameters.add_text(elements.array());
    postgres::run_transaction(session, {{&meet, std::move(parameters)}});
  }
  return met_patterns(session, schema, consumer);
}

}  // namespace pawl::ledger
