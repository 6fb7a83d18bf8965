#include "handlers/array_cast.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <string>

#include "handlers/sql_lexer.hpp"

namespace pawl::handlers {
namespace {

// What may follow the first word of a type's name: double precision, timestamp with time zone.
constexpr std::array<std::string_view, 6> kTypeWords{"precision", "varying", "with",
                                                     "without",   "time",    "zone"};

std::string lower(std::string_view word) {
  std::string result{word};
  std::transform(result.begin(), result.end(), result.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return result;
}

class CastReader {
 public:
  explicit CastReader(std::string_view sql) : sql_(sql) { read(); }

  bool is_array() {
    if (!take(":") || !take(":") || !take_name())
      return false;
    while (take(".")) {
      if (!take_name())
        return false;
    }
    take_type_words();
    if (take("(")) {
      while (!done_ && content_ != ")")
        next();
      if (!take(")"))
        return false;
    }
    take_type_words();
    if (is_word() && lower(content_) == "array")
      return true;
    if (!take("["))
      return false;
    if (kind_ == SqlTokenKind::kNumber)
      next();
    return content_ == "]";
  }

 private:
  void read() {
    while (true) {
      done_ = at_ >= sql_.size();
      content_ = {};
      if (done_)
        return;
      const auto token = next_sql_token(sql_, at_);
      kind_ = token.kind;
      content_ = sql_.substr(at_, token.end - at_);
      end_ = token.end;
      if (kind_ != SqlTokenKind::kWhiteSpace && kind_ != SqlTokenKind::kComment)
        return;
      at_ = end_;
    }
  }

  void next() {
    at_ = end_;
    read();
  }

  bool take(std::string_view wanted) {
    if (content_ != wanted)
      return false;
    next();
    return true;
  }

  [[nodiscard]] bool is_word() const { return !done_ && kind_ == SqlTokenKind::kWord; }

  bool take_name() {
    if (!is_word() && (done_ || kind_ != SqlTokenKind::kQuotedIdentifier))
      return false;
    next();
    return true;
  }

  void take_type_words() {
    while (is_word() &&
           std::find(kTypeWords.begin(), kTypeWords.end(), lower(content_)) != kTypeWords.end())
      next();
  }

  std::string_view sql_;
  std::size_t at_ = 0;
  std::size_t end_ = 0;
  SqlTokenKind kind_ = SqlTokenKind::kOther;
  std::string_view content_;
  bool done_ = false;
};

}  // namespace

bool is_cast_to_array(std::string_view sql) {
  return CastReader{sql}.is_array();
}

}  // namespace pawl::handlers
