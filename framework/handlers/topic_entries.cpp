#include "handlers/topic_entries.hpp"

#include <set>
#include <utility>

#include "handlers/published_topics.hpp"

namespace pawl::handlers {

message::TopicEntries topic_entries(const Options& options) {
  std::vector<std::string> entries;
  std::set<std::string> excluded{options.dead_letters.topic, options.outbox.state_topic};
  for (const auto& handler : options.handlers) {
    entries.insert(entries.end(), handler.topics.begin(), handler.topics.end());
    auto statements = handler.sql;
    statements.push_back({handler.response.text});
    for (const auto& statement : statements) {
      for (auto& topic : published_topics(statement.text, options.postgres.schema))
        excluded.insert(std::move(topic));
    }
  }
  return message::TopicEntries(entries, std::move(excluded));
}

Options with_topics(Options options, const std::vector<std::string>& existing) {
  const auto entries = topic_entries(options);
  if (!entries.has_patterns())
    return options;
  for (auto& handler : options.handlers) {
    std::vector<std::string> topics;
    for (const auto& entry : handler.topics) {
      if (!message::is_topic_pattern(entry)) {
        topics.push_back(entry);
        continue;
      }
      for (const auto& topic : existing) {
        if (entries.entry_of(topic) == entry)
          topics.push_back(topic);
      }
    }
    handler.topics = std::move(topics);
  }
  return options;
}

}  // namespace pawl::handlers
