// Whatever text or message comes, the outcome is a value or a typed error, never anything else.
#include <simdjson.h>
#include <random>

#include "handlers/sql_text.hpp"
#include "message/condition.hpp"
#include "message/idempotency_key.hpp"
#include "message/message_error.hpp"
#include "message/template.hpp"
#include "message_builder.hpp"
#include "prelude.hpp"

using namespace pawl::handlers;
using namespace pawl::message;

namespace {

constexpr int kRounds = 5000;

class Garbage {
 public:
  explicit Garbage(std::uint64_t seed) : random_(seed) {}

  std::size_t below(std::size_t bound) { return random_() % bound; }

  std::string bytes(std::size_t max) {
    std::string text;
    for (std::size_t length = below(max + 1); length > 0; --length) {
      text += static_cast<char>(random_() & 0xFFU);
    }
    return text;
  }

  // Made of pieces that the grammars care about, and a stray byte now and then.
  std::string pieces(const std::vector<std::string>& alphabet, std::size_t max) {
    std::string text;
    for (std::size_t count = below(max + 1); count > 0; --count) {
      text += below(20) == 0 ? bytes(2) : alphabet[below(alphabet.size())];
    }
    return text;
  }

 private:
  std::mt19937_64 random_;
};

const std::vector<std::string>& json_pieces() {
  static const std::vector<std::string> all{
      "{",      "}",    "[",    "]", ":",       ",",       "\"",      "\\",  "\"a\"", "\"b\"", "1",
      "-0.5e3", "true", "null", " ", "\\u0000", "\\ud800", "{\"a\":", "[1,", "é",     "\"a\":"};
  return all;
}

const std::vector<std::string>& syntax_pieces() {
  static const std::vector<std::string> all{
      "{",   "}",     "{{", "}}", "{/a}",    "{/a/b?}", "{header:a}", "{key}",   "{value",
      "|",   "?",     "~",  "/",  "sha256:", "header:", "\\",         " ",       "\n",
      "\"",  "'",     "''", "E'", "$$",      "$t$",     "$1",         "--",      "/*",
      "*/",  ";",     "(",  ")",  "[",       "]",       ",",          "==",      "!=",
      "!",   "&&",    "||", "in", "has",     "\"x\"",   "'y'",        "SELECT",  "COMMIT",
      "SET", "LOCAL", "a",  "1",  "offset",  "{topic}", "é",          "{/a|key}"};
  return all;
}

const std::vector<std::string>& condition_pieces() {
  static const std::vector<std::string> all{"{/a}",        "{header:a}",
                                            "{value|key}", "\"a\"",
                                            "'b'",         "==",
                                            "!=",          " in ",
                                            "[\"a\"]",     "[",
                                            "]",           ",",
                                            "(",           ")",
                                            "!",           "&&",
                                            "||",          " ",
                                            "has({/a})",   "has(",
                                            "{/a} == 'a'", "{key} != {/a}",
                                            "{x}",         "and",
                                            "=",           "\\"};
  return all;
}

MessageBuilder garbage_message(Garbage& garbage) {
  const auto maybe = [&](std::string text) {
    return garbage.below(4) == 0 ? std::nullopt : std::optional{std::move(text)};
  };
  MessageBuilder builder;
  builder.key(maybe(garbage.bytes(8))).value(maybe(garbage.pieces(json_pieces(), 12)));
  builder.header("a", maybe(garbage.bytes(8))).header(garbage.bytes(3), maybe(garbage.bytes(3)));
  return builder;
}

// Calls `use(parse(text), message, json)` with texts of these pieces and garbage messages; counts
// the texts that were understood.
template <typename Parse, typename Use>
std::size_t understood(const std::vector<std::string>& alphabet, Parse parse, Use use) {
  Garbage garbage{alphabet.size()};
  JsonReader reader;
  std::size_t count = 0;
  for (int i = 0; i < kRounds; ++i) {
    const std::string text = garbage.pieces(alphabet, 7);
    const MessageBuilder builder = garbage_message(garbage);
    const pawl::Message message = builder.message();
    JsonView json{reader, message};
    try {
      const auto parsed = parse(text);
      ++count;
      use(parsed, message, json);
    } catch (const SyntaxError& error) {
      CHECK(error.column() >= 1);
      CHECK(error.line() >= 1);
    } catch (const MessageError& error) {
      CHECK(error.what() != std::string{});
    }
  }
  return count;
}

void check_storable(const std::string& text) {
  CHECK(simdjson::validate_utf8(text));
  CHECK(text.find('\0') == std::string::npos);
}

}  // namespace

TEST_CASE("garbage as a key template gives a storable key, no key, or a typed error") {
  const auto use = [](const Template& key, const pawl::Message& message, JsonView& json) {
    auto rendered = key.render_key(message, json);
    auto* text = std::get_if<KeyText>(&rendered);
    if (text == nullptr)
      return;
    REQUIRE_FALSE(text->text.empty());
    const auto stored = make_idempotency_key(std::move(text->text));
    REQUIRE(stored.has_value());
    check_storable(*stored);
    CHECK(stored->size() <= kMaxIdempotencyKeyBytes);
  };
  CHECK(understood(syntax_pieces(), &Template::parse_key, use) > 50);
}

TEST_CASE("garbage as SQL gives parameters that PostgreSQL can hold, or a typed error") {
  const auto use = [](const SqlText& sql, const pawl::Message& message, JsonView& json) {
    check_storable(sql.sql());
    for (const Template& parameter : sql.parameters()) {
      const auto text = parameter.render_parameter(message, json);
      if (text)
        check_storable(*text);
    }
  };
  CHECK(understood(syntax_pieces(), &SqlText::parse, use) > 50);
}

TEST_CASE("garbage as a condition gives yes, no or a typed error") {
  const auto use = [](const Condition& condition, const pawl::Message& message, JsonView& json) {
    (void)condition.matches(message, json);
  };
  CHECK(understood(condition_pieces(), &Condition::parse, use) > 50);
}

TEST_CASE("garbage as JSON gives a document or a typed error") {
  Garbage garbage{4};
  JsonReader reader;
  const std::vector<JsonPointer> pointers{JsonPointer::parse(""), JsonPointer::parse("/a"),
                                          JsonPointer::parse("/0/a/b")};
  std::size_t documents = 0;
  for (int i = 0; i < kRounds; ++i) {
    const std::string text = i % 4 == 0 ? garbage.bytes(40) : garbage.pieces(json_pieces(), 12);
    try {
      reader.read(text);
      ++documents;
      for (const JsonPointer& pointer : pointers) {
        const auto value = reader.find(pointer);
        std::string scratch;
        const auto value_text = value ? value->text(scratch) : std::nullopt;
        if (value_text)
          CHECK(simdjson::validate_utf8(*value_text));
      }
    } catch (const JsonError& error) {
      CHECK(error.byte().value_or(0) <= text.size());
    }
  }
  CHECK(documents > 50);
}
