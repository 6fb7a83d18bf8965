#include "handlers/sql_lexer.hpp"

#include "prelude.hpp"

using namespace pawl::handlers;

namespace {

using Kind = SqlTokenKind;
using Tokens = std::vector<std::pair<Kind, std::string>>;

// All tokens but white space.
Tokens tokens(std::string_view text) {
  Tokens result;
  for (std::size_t at = 0; at < text.size();) {
    const SqlToken token = next_sql_token(text, at);
    REQUIRE(token.closed);
    REQUIRE(token.end > at);
    if (token.kind != Kind::kWhiteSpace) {
      result.emplace_back(token.kind, text.substr(at, token.end - at));
    }
    at = token.end;
  }
  return result;
}

Tokens one(Kind kind, std::string text) {
  return {{kind, std::move(text)}};
}

}  // namespace

TEST_CASE("quoted parts end where PostgreSQL ends them") {
  for (const auto* text :
       {"'plain'", "''", "'it''s'", R"('back\')", R"(E'esc\'aped')", R"(e'a\\')", "E'a''b\\\\'",
        "$$a 'b' \"c\" $1 ; -- x$$", "$tag$ $$ $other$ $tag$", "$_$x$_$", "$ü1$ $ü$ $ü1$",
        "E'first'\n  'sec\\'ond'", "E'first' -- comment\n 'sec\\'ond'"}) {
    CAPTURE(text);
    CHECK(tokens(text) == one(Kind::kString, text));
  }
  CHECK(tokens(R"("na""me'$$")") == one(Kind::kQuotedIdentifier, R"("na""me'$$")"));
}

TEST_CASE("comments end where PostgreSQL ends them") {
  CHECK(tokens("-- it's \"open\" /*") == one(Kind::kComment, "-- it's \"open\" /*"));
  CHECK(tokens("/* a /* nested ' */ b */") == one(Kind::kComment, "/* a /* nested ' */ b */"));
  CHECK(tokens("a--b\nc") ==
        Tokens{{Kind::kWord, "a"}, {Kind::kComment, "--b"}, {Kind::kWord, "c"}});
  // A comment that ends with a quote does not continue the string before it.
  CHECK(tokens("E'a'\n-- it's 'b'") ==
        Tokens{{Kind::kString, "E'a'"}, {Kind::kComment, "-- it's 'b'"}});
  CHECK(tokens("1+--x\n'y'") == Tokens{{Kind::kNumber, "1"},
                                       {Kind::kOther, "+"},
                                       {Kind::kComment, "--x"},
                                       {Kind::kString, "'y'"}});
}

TEST_CASE("names, numbers, parameters and dollars are told apart") {
  CHECK(tokens("a$b$c") == one(Kind::kWord, "a$b$c"));
  CHECK(tokens("tätig") == one(Kind::kWord, "tätig"));
  CHECK(tokens("$1") == one(Kind::kParameter, "$1"));
  CHECK(tokens("1.5e3") == one(Kind::kNumber, "1.5e3"));
  CHECK(tokens("1$2") == Tokens{{Kind::kNumber, "1"}, {Kind::kParameter, "$2"}});
  CHECK(tokens("1$$;$$") == Tokens{{Kind::kNumber, "1"}, {Kind::kString, "$$;$$"}});
  CHECK(tokens("ne'x'") == Tokens{{Kind::kWord, "ne"}, {Kind::kString, "'x'"}});
  CHECK(tokens(R"(N'a\' B'1')") == Tokens{{Kind::kWord, "N"},
                                          {Kind::kString, R"('a\')"},
                                          {Kind::kWord, "B"},
                                          {Kind::kString, "'1'"}});
  CHECK(tokens("$x") == Tokens{{Kind::kOther, "$"}, {Kind::kWord, "x"}});
  CHECK(tokens("E'a' 'b'") == Tokens{{Kind::kString, "E'a'"}, {Kind::kString, "'b'"}});
  CHECK(tokens("a;b") == Tokens{{Kind::kWord, "a"}, {Kind::kSemicolon, ";"}, {Kind::kWord, "b"}});
}

TEST_CASE("what the text's end cuts off is reported as not closed") {
  for (const auto* text : {"'open", "E'open\\'", "\"open", "/* open /* */", "$$open", "$a$open$b$",
                           "'a''", "E'\\", "E'a'\n'open"}) {
    CAPTURE(text);
    const SqlToken token = next_sql_token(text, 0);
    CHECK_FALSE(token.closed);
    CHECK(token.end == std::string_view{text}.size());
  }
}
