#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace pawl::message {

/// Whether an entry of a handler's topics is a pattern, and not the name of a topic: it begins with
/// ^, which no name has.
[[nodiscard]] bool is_topic_pattern(std::string_view entry);

/// What is wrong with it, and what to write instead.
struct TopicPatternProblem {
  std::string what;  ///< empty: nothing
  std::string fix;
};
[[nodiscard]] TopicPatternProblem problem_of_topic_pattern(const std::string& pattern);

/// A POSIX extended regular expression that begins at the begin of a topic's name. Of those no time
/// of a match is exponential, whatever stands in it. Immutable, any thread.
class TopicPattern {
 public:
  /// Throws std::invalid_argument for what has a problem.
  explicit TopicPattern(std::string text);
  ~TopicPattern();
  TopicPattern(TopicPattern&&) noexcept;
  TopicPattern& operator=(TopicPattern&&) = delete;

  [[nodiscard]] const std::string& text() const { return text_; }
  [[nodiscard]] bool matches(const std::string& topic) const;
  /// Why the text does not parse; empty: it does.
  [[nodiscard]] static std::string problem(const std::string& text);

 private:
  struct Compiled;
  std::string text_;
  std::unique_ptr<Compiled> compiled_;
};

/// What a consumer's handlers say of their topics: names, and patterns that stand for whatever
/// topics there are. A name wins over patterns, internal topics (`__...`) no pattern means, and
/// where several patterns mean one topic none does. Immutable, any thread.
class TopicEntries {
 public:
  /// `excluded`: topics that no pattern means. Throws as TopicPattern does.
  explicit TopicEntries(const std::vector<std::string>& entries,
                        std::set<std::string> excluded = {});

  [[nodiscard]] const std::vector<std::string>& names() const { return names_; }
  [[nodiscard]] const std::vector<TopicPattern>& patterns() const { return patterns_; }
  [[nodiscard]] bool has_patterns() const { return !patterns_.empty(); }

  /// The entry that a topic belongs to: its name, or the only pattern that means it; empty: none.
  [[nodiscard]] std::string entry_of(const std::string& topic) const;

  struct Chosen {
    /// Each name, whether there is such a topic or not; behind them what the patterns mean.
    std::vector<std::string> topics;
    /// Topics that more than one pattern means, with these.
    std::map<std::string, std::vector<std::string>> ambiguous;
  };
  /// `existing`: the topics that Kafka has.
  [[nodiscard]] Chosen choose(const std::vector<std::string>& existing) const;

 private:
  [[nodiscard]] std::vector<std::string> patterns_of(const std::string& topic) const;

  std::vector<std::string> names_;
  std::vector<TopicPattern> patterns_;
  std::set<std::string> excluded_;
};

/// For people, with what to do.
[[nodiscard]] std::string ambiguous_topic_text(const std::string& topic,
                                               const std::vector<std::string>& patterns);

}  // namespace pawl::message
