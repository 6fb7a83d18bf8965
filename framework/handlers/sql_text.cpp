#include "handlers/sql_text.hpp"

#include <fmt/format.h>
#include <simdjson.h>

#include <array>
#include <cctype>
#include <optional>
#include <utility>

#include "handlers/array_cast.hpp"
#include "handlers/sql_lexer.hpp"

namespace pawl::handlers {
namespace {

/// What braces are.
enum class Braces {
  kValues,  ///< placeholders, a value each
  kArrays,  ///< placeholders, an array each
  kText,    ///< nothing of ours: parameters are numbered by hand
};

enum class Refusal { kTransaction, kSession, kProtocol };

// A statement is refused when it begins with these words ("*" stands for any word or none).
struct RefusedStatement {
  std::string_view first;
  std::string_view second;
  Refusal why;
};

// SET is looked at apart.
constexpr std::array<RefusedStatement, 17> kRefusedStatements{{
    {"BEGIN", "*", Refusal::kTransaction},
    {"START", "*", Refusal::kTransaction},
    {"COMMIT", "*", Refusal::kTransaction},
    {"END", "*", Refusal::kTransaction},
    {"ROLLBACK", "*", Refusal::kTransaction},
    {"ABORT", "*", Refusal::kTransaction},
    {"SAVEPOINT", "*", Refusal::kTransaction},
    {"RELEASE", "*", Refusal::kTransaction},
    {"PREPARE", "TRANSACTION", Refusal::kTransaction},
    {"PREPARE", "*", Refusal::kSession},
    {"DEALLOCATE", "*", Refusal::kSession},
    {"RESET", "*", Refusal::kSession},
    {"DISCARD", "*", Refusal::kSession},
    {"LISTEN", "*", Refusal::kSession},
    {"UNLISTEN", "*", Refusal::kSession},
    {"LOAD", "*", Refusal::kSession},
    {"COPY", "*", Refusal::kProtocol},
}};

// Why SET with these following words is refused. SET LOCAL and SET CONSTRAINTS end with the
// transaction and are fine, but for what changes the transaction itself or its role, under which
// pawl's own statements then run.
std::optional<Refusal> refused_set(const std::vector<std::string>& words) {
  const auto word = [&](std::size_t i) { return i < words.size() ? words[i] : std::string{}; };
  if (word(1) == "CONSTRAINTS")
    return std::nullopt;
  if (word(1) == "TRANSACTION" || word(1).starts_with("TRANSACTION_"))
    return Refusal::kTransaction;
  if (word(1) != "LOCAL")
    return Refusal::kSession;
  const std::string changed = word(2);  // empty for a quoted name, which may be anything
  const bool alters = changed.empty() || changed == "TRANSACTION" ||
                      changed.starts_with("TRANSACTION_") || changed == "ROLE" ||
                      changed == "SESSION";
  return alters ? std::optional{Refusal::kTransaction} : std::nullopt;
}

std::optional<Refusal> refused(const std::vector<std::string>& words) {
  if (words.empty())
    return std::nullopt;
  if (words.front() == "SET")
    return refused_set(words);
  for (const RefusedStatement& statement : kRefusedStatements) {
    const bool second =
        statement.second == "*" || (words.size() > 1 && words[1] == statement.second);
    if (words.front() == statement.first && second)
      return statement.why;
  }
  return std::nullopt;
}

std::string_view explain(Refusal refusal) {
  switch (refusal) {
    case Refusal::kTransaction:
      return "would end or change the message's transaction, which includes key, effects, and "
             "offset. Remove it, because pawl begins and commits the transaction. The option "
             "`isolation` sets the isolation level";
    case Refusal::kSession:
      return "changes the session beyond the message's transaction. Remove it, or use SET LOCAL "
             "for a setting";
    case Refusal::kProtocol:
      return "uses another protocol than a query. Use INSERT, UPDATE, DELETE, or SELECT";
  }
  return "";
}

}  // namespace

class SqlTextParser {
 public:
  SqlTextParser(std::string_view text, Braces braces) : text_(text), braces_(braces) {}

  SqlText parse() {
    check_bytes();
    while (at_ < text_.size()) {
      if (braces_ != Braces::kText && (text_[at_] == '{' || text_[at_] == '}')) {
        brace();
      } else {
        token(next_sql_token(text_, at_));
      }
    }
    if (!statement_begin_) {
      fail(0, "the statement is empty. Write one, or remove it");
    }
    if (const auto refusal = refused(words_)) {
      fail(*statement_begin_, fmt::format("{} {}", words_.front(), explain(*refusal)));
    }
    while (!result_.sql_.empty() &&
           std::isspace(static_cast<unsigned char>(result_.sql_.back())) != 0) {
      result_.sql_.pop_back();
    }
    return std::move(result_);
  }

 private:
  void check_bytes() const {
    const std::size_t nul = text_.find('\0');
    if (nul != std::string_view::npos)
      fail(nul, "a NUL character in SQL. Remove it");
    if (!simdjson::validate_utf8(text_.data(), text_.size())) {
      fail(0, braces_ == Braces::kText
                  ? "the SQL is not valid UTF-8"
                  : "the SQL is not valid UTF-8. Write the configuration in UTF-8");
    }
  }

  void brace() {
    const char c = text_[at_];
    begin_of_content();
    if (at_ + 1 < text_.size() && text_[at_ + 1] == c) {
      result_.sql_ += c;
      at_ += 2;
      return;
    }
    if (c == '}')
      fail(at_, "a } without its {. Write }} for a literal brace");
    parameter();
  }

  void parameter() {
    const std::size_t begin = at_;
    if (begin > 0 && text_[begin - 1] == '$') {
      fail(begin - 1,
           "a $ before a placeholder. In a configuration, $${ is a literal ${. Write $$${ if a "
           "string in dollar quotes starts with a brace");
    }
    auto [placeholder, end] = message::Placeholder::parse(text_, begin);
    const bool touches_before =
        begin > 0 && (end_of_parameter_ == begin || is_sql_word_character(text_[begin - 1]));
    const bool touches_behind = end < text_.size() && is_sql_word_character(text_[end]);
    if (touches_before || touches_behind) {
      fail(begin,
           "the placeholder touches its neighbor. Put a space or an operator between them, such as "
           "|| to join texts. A name or a part of a name cannot be a parameter");
    }
    result_.parameters_.emplace_back(std::move(placeholder));
    if (braces_ == Braces::kArrays && !is_cast_to_array(text_.substr(end))) {
      fail(begin, fmt::format("in a batch, this is an array with one element per message. Write a "
                              "cast to an array type, as in unnest({}::text[])",
                              result_.parameters_.back().text()));
    }
    if (result_.parameters_.size() > SqlText::kMaxParameters) {
      fail(begin, "more than 65535 parameters, PostgreSQL's limit. Split the statement");
    }
    result_.sql_ += fmt::format("${}", result_.parameters_.size());
    words_end_ = true;
    at_ = end;
    end_of_parameter_ = end;
  }

  void token(const SqlToken& token) {
    const std::string_view content = text_.substr(at_, token.end - at_);
    if (!token.closed)
      fail(at_, unclosed(token.kind));
    switch (token.kind) {
      case SqlTokenKind::kSemicolon:
        semicolon();
        break;
      case SqlTokenKind::kParameter:
        if (braces_ == Braces::kText) {
          content_token(content);
          break;
        }
        fail(at_, fmt::format(
                      "{} is a numbered parameter. Write a placeholder, such as {{/id}}, instead",
                      content));
      case SqlTokenKind::kWhiteSpace:
        append(content);
        break;
      case SqlTokenKind::kComment:
        refuse_placeholders(token, "a placeholder in a comment cannot be a parameter. Remove it");
        append(content);
        break;
      case SqlTokenKind::kString:
        refuse_placeholders(token,
                            "a placeholder inside a string would be plain text. Remove the quotes "
                            "around it, and join text with ||. For an array, write '{\"key\"}'");
        content_token(content);
        break;
      case SqlTokenKind::kQuotedIdentifier:
        refuse_placeholders(
            token,
            "a name cannot be a parameter. Write the name itself, with one handler per name");
        content_token(content);
        break;
      case SqlTokenKind::kWord:
        word(content);
        break;
      case SqlTokenKind::kNumber:
      case SqlTokenKind::kOther:
        content_token(content);
        break;
    }
    at_ = token.end;
  }

  static std::string unclosed(SqlTokenKind kind) {
    switch (kind) {
      case SqlTokenKind::kComment:
        return "the comment is not closed. Write */ at its end";
      case SqlTokenKind::kQuotedIdentifier:
        return "the quoted name is not closed. Write \" at its end";
      default:
        return "the string is not closed. Write its closing quote";
    }
  }

  void semicolon() {
    begin_of_content();
    semicolon_ = true;
  }

  void word(std::string_view content) {
    refuse_session_lock(content);
    if (!words_end_ && words_.size() < 3)
      words_.push_back(sql_keyword(content));
    begin_of_content();
    append(content);
  }

  /// PostgreSQL manual, 13.3.5: these are held until the session ends, whatever the transaction
  /// does.
  void refuse_session_lock(std::string_view content) const {
    const auto name = sql_keyword(content);
    if (!name.starts_with("PG_ADVISORY_LOCK") && !name.starts_with("PG_TRY_ADVISORY_LOCK"))
      return;
    fail(at_, fmt::format("{} takes a lock of the session, which outlives the message's "
                          "transaction. Use pg_{}advisory_xact_lock{}",
                          content, name.starts_with("PG_TRY") ? "try_" : "",
                          name.ends_with("_SHARED") ? "_shared" : ""));
  }

  void content_token(std::string_view content) {
    words_end_ = true;
    begin_of_content();
    append(content);
  }

  // Anything but white space and comments.
  void begin_of_content() {
    if (semicolon_) {
      fail(at_, braces_ == Braces::kText ? "a second statement. Add each one separately"
                                         : "a second statement. Write each statement as an entry "
                                           "of its own in the `sql` list");
    }
    if (!statement_begin_) {
      if (text_[at_] == ';')
        fail(at_, "the statement before ; is empty. Remove the semicolon");
      statement_begin_ = at_;
    }
  }

  void append(std::string_view content) {
    if (!semicolon_)
      result_.sql_ += content;
  }

  void refuse_placeholders(const SqlToken& token, const std::string& problem) const {
    if (braces_ == Braces::kText)
      return;
    const std::string_view until_end = text_.substr(0, token.end);
    for (std::size_t brace = until_end.find('{', at_); brace != std::string_view::npos;
         brace = until_end.find('{', brace + 1)) {
      if (is_placeholder(until_end, brace))
        fail(brace, problem);
    }
  }

  static bool is_placeholder(std::string_view text, std::size_t brace) {
    try {
      (void)message::Placeholder::parse(text, brace);
      return true;
    } catch (const message::TemplateError&) {
      return false;
    }
  }

  [[noreturn]] void fail(std::size_t place, const std::string& problem) const {
    throw SqlTextError(text_, place, problem);
  }

  std::string_view text_;
  Braces braces_;
  std::size_t at_ = 0;
  SqlText result_;
  std::optional<std::size_t> statement_begin_;
  std::optional<std::size_t> end_of_parameter_;
  std::vector<std::string> words_;  // the statement's first words, in capitals
  bool words_end_ = false;
  bool semicolon_ = false;
};

SqlText SqlText::parse(std::string_view text) {
  return SqlTextParser{text, Braces::kValues}.parse();
}

std::string SqlText::parse_numbered(std::string_view text) {
  return SqlTextParser{text, Braces::kText}.parse().sql();
}

SqlText SqlText::parse_batch(std::string_view text) {
  return SqlTextParser{text, Braces::kArrays}.parse();
}

bool is_copy(std::string_view sql) {
  for (std::size_t at = 0; at < sql.size();) {
    const auto token = next_sql_token(sql, at);
    const auto text = sql.substr(at, token.end - at);
    at = token.end;
    if (token.kind == SqlTokenKind::kWhiteSpace || token.kind == SqlTokenKind::kComment ||
        token.kind == SqlTokenKind::kSemicolon)
      continue;
    return token.kind == SqlTokenKind::kWord && sql_keyword(text) == "COPY";
  }
  return false;
}

}  // namespace pawl::handlers
