#include "message/topic_entries.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <regex.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <stdexcept>
#include <utility>

namespace pawl::message {
namespace {

/// The first backslash before a letter or a digit; npos: there is none. PostgreSQL's and Java's
/// classes (\d) would be taken for the letter itself.
std::size_t foreign_escape(std::string_view pattern) {
  for (std::size_t i = 0; i + 1 < pattern.size(); ++i) {
    if (pattern[i] != '\\')
      continue;
    if (std::isalnum(static_cast<unsigned char>(pattern[i + 1])) != 0)
      return i;
    ++i;
  }
  return std::string_view::npos;
}

}  // namespace

/// A code other than 0: it is none, and problem() says why.
struct TopicPattern::Compiled {
  explicit Compiled(const std::string& text) : code(regcomp(&regex, text.c_str(), REG_EXTENDED)) {}
  ~Compiled() {
    if (code == 0)
      regfree(&regex);
  }
  Compiled(const Compiled&) = delete;
  Compiled& operator=(const Compiled&) = delete;

  [[nodiscard]] std::string problem() const {
    if (code == 0)
      return {};
    std::array<char, 200> why{};
    regerror(code, &regex, why.data(), why.size());
    return why.data();
  }

  regex_t regex{};
  int code;
};

bool is_topic_pattern(std::string_view entry) {
  return entry.starts_with('^');
}

TopicPatternProblem problem_of_topic_pattern(const std::string& pattern) {
  if (!is_topic_pattern(pattern))
    return {"is no pattern", "let it begin with ^"};
  if (pattern.find('\0') != std::string::npos)
    return {"has a NUL", "take it out"};
  if (const auto at = foreign_escape(pattern); at != std::string_view::npos) {
    return {fmt::format("has {}, which says nothing in a POSIX extended regular expression",
                        pattern.substr(at, 2)),
            "write a class, such as [0-9] or [[:alnum:]]"};
  }
  return {TopicPattern::problem(pattern), "correct it; it is a POSIX extended regular expression"};
}

std::string TopicPattern::problem(const std::string& text) {
  return Compiled(text).problem();
}

TopicPattern::TopicPattern(std::string text) : text_(std::move(text)) {
  if (const auto problem = problem_of_topic_pattern(text_); !problem.what.empty())
    throw std::invalid_argument(fmt::format("{}: {}", text_, problem.what));
  compiled_ = std::make_unique<Compiled>(text_);
}

TopicPattern::~TopicPattern() = default;
TopicPattern::TopicPattern(TopicPattern&&) noexcept = default;

bool TopicPattern::matches(const std::string& topic) const {
  regmatch_t match{};
  // An alternative without a ^ of its own may be found behind the begin.
  return regexec(&compiled_->regex, topic.c_str(), 1, &match, 0) == 0 && match.rm_so == 0;
}

TopicEntries::TopicEntries(const std::vector<std::string>& entries, std::set<std::string> excluded)
    : excluded_(std::move(excluded)) {
  std::set<std::string_view> seen;
  for (const auto& entry : entries) {
    if (!seen.insert(entry).second)
      continue;
    if (is_topic_pattern(entry)) {
      patterns_.emplace_back(entry);
    } else {
      names_.push_back(entry);
    }
  }
}

std::vector<std::string> TopicEntries::patterns_of(const std::string& topic) const {
  std::vector<std::string> found;
  if (topic.starts_with("__") || excluded_.contains(topic))
    return found;
  for (const auto& pattern : patterns_) {
    if (pattern.matches(topic))
      found.push_back(pattern.text());
  }
  return found;
}

std::string TopicEntries::entry_of(const std::string& topic) const {
  if (std::ranges::find(names_, topic) != names_.end())
    return topic;
  auto found = patterns_of(topic);
  return found.size() == 1 ? std::move(found.front()) : std::string{};
}

TopicEntries::Chosen TopicEntries::choose(const std::vector<std::string>& existing) const {
  Chosen chosen;
  chosen.topics = names_;
  std::set<std::string> matched;
  for (const auto& topic : existing) {
    if (std::ranges::find(names_, topic) != names_.end())
      continue;
    auto patterns = patterns_of(topic);
    if (patterns.size() == 1) {
      matched.insert(topic);
    } else if (patterns.size() > 1) {
      chosen.ambiguous[topic] = std::move(patterns);
    }
  }
  chosen.topics.insert(chosen.topics.end(), matched.begin(), matched.end());
  return chosen;
}

std::string ambiguous_topic_text(const std::string& topic,
                                 const std::vector<std::string>& patterns) {
  return fmt::format(
      "topic {} is meant by more than one pattern ({}), so nobody handles it: name it in the "
      "topics "
      "of the handler that is to have it, or let only one pattern mean it",
      topic, fmt::join(patterns, ", "));
}

}  // namespace pawl::message
