#include "message/message_error.hpp"
#include "message/template.hpp"
#include "message_builder.hpp"
#include "prelude.hpp"

using namespace pawl::message;

namespace {

std::optional<std::string> parameter(std::string_view text, const MessageBuilder& builder) {
  const Template parsed = Template::parse(text);
  return with(builder, [&](const pawl::Message& message, JsonView& json) {
    return parsed.render_parameter(message, json);
  });
}

std::string error_of(std::string_view text, const MessageBuilder& builder) {
  try {
    (void)parameter(text, builder);
  } catch (const RenderError& error) {
    return error.what();
  }
  return "no error";
}

}  // namespace

TEST_CASE("an SQL parameter is the value's text") {
  CHECK(parameter("{/amount}", valued(R"({"amount": 12345678901234567890.10})")) ==
        "12345678901234567890.10");
  CHECK(parameter("{/name}", valued(R"({"name": "O'Neil\n"})")) == "O'Neil\n");
  CHECK(parameter("{/flag}", valued(R"({"flag": false})")) == "false");
  CHECK(parameter("{/o}", valued(R"({"o": {"a" : "\u0041"}})")) == R"({"a" : "\u0041"})");
  CHECK(parameter("{value}", valued(" {} ")) == " {} ");
  CHECK(parameter("{header:id}", MessageBuilder{}.header("id", "x")) == "x");
  CHECK(parameter("{header:id}", MessageBuilder{}.header("id", "")) == "");
  CHECK(parameter("{key}", MessageBuilder{}) == "record-key");
  CHECK(parameter("{topic}", MessageBuilder{}) == "payments");
  CHECK(parameter("{partition}", MessageBuilder{}) == "3");
  CHECK(parameter("{offset}", MessageBuilder{}.offset(9223372036854775807)) ==
        "9223372036854775807");
  CHECK(parameter("{timestamp}", MessageBuilder{}) == "1700000000123");
  CHECK(parameter("{topic_id}", MessageBuilder{}) == "dG9waWMtaWQtb2YtcGF3bA");
}

TEST_CASE("null is SQL NULL, with and without ?") {
  CHECK(parameter("{/a}", valued(R"({"a": null})")) == std::nullopt);
  CHECK(parameter("{/a?}", valued(R"({"a": null})")) == std::nullopt);
  CHECK(parameter("{header:a}", MessageBuilder{}.header("a", std::nullopt)) == std::nullopt);
  CHECK(parameter("{key}", MessageBuilder{}.key(std::nullopt)) == std::nullopt);
  CHECK(parameter("{value}", MessageBuilder{}.value(std::nullopt)) == std::nullopt);
  CHECK(parameter("{sha256:value}", MessageBuilder{}.value(std::nullopt)) == std::nullopt);
  CHECK(parameter("{/b|/a}", valued(R"({"a": null})")) == std::nullopt);
  CHECK(parameter("{/a|/b}", valued(R"({"a": null, "b": 1})")) == "1");
}

TEST_CASE("a missing value is SQL NULL with ?, and an error that names it without") {
  CHECK(parameter("{/a?}", valued("{}")) == std::nullopt);
  CHECK(parameter("{header:a|/a?}", valued("{}")) == std::nullopt);
  CHECK(parameter("{/a?}", MessageBuilder{}.value(std::nullopt)) == std::nullopt);
  CHECK(parameter("{timestamp?}", MessageBuilder{}.timestamp(-1)) == std::nullopt);
  CHECK(error_of("{/a}", valued("{}")) ==
        "the message has no {/a}. Fix the producer, or write {/a?} if the value may be absent (SQL "
        "NULL)");
  CHECK(error_of("{/a}", MessageBuilder{}.value(std::nullopt)) ==
        "the message is a tombstone (its value is null), so it has no {/a}. Add a handler with "
        "when = \"!has({value})\" before this one, or write {/a?} if the value may be absent (SQL "
        "NULL)");
  CHECK_THAT(error_of("{header:a|/a}", valued("{}")), ContainsSubstring("no {header:a|/a}"));
  CHECK_THAT(error_of("{topic_id}", MessageBuilder{}.topic_id("")), ContainsSubstring("topic_id"));
}

TEST_CASE("what PostgreSQL's text cannot hold is an error without the payload") {
  CHECK(error_of("{/a}", valued(R"({"a": "secret\u0000"})")) ==
        "{/a} contains NUL, which a PostgreSQL text cannot store. Fix the producer, or handle the "
        "message in code");
  CHECK_THAT(error_of("{value}", valued("a\0b"s)), ContainsSubstring("contains NUL"));
  CHECK_THAT(error_of("{key}", MessageBuilder{}.key("\xff")), ContainsSubstring("not valid UTF-8"));
  CHECK_THAT(error_of("{header:h}", MessageBuilder{}.header("h", "\xed\xa0\x80")),
             ContainsSubstring("not valid UTF-8"));
  CHECK_THAT(error_of("{/a}", valued(R"({"a": "\ud800"})")), ContainsSubstring("surrogate"));
  CHECK_THAT(error_of("{/a?}", valued(R"({"a": "\ud800"})")), ContainsSubstring("surrogate"));
  CHECK(parameter("{sha256:value}", valued("a\0b\xff"s)).has_value());
}

TEST_CASE("errors of a message are permanent: no retry can help") {
  CHECK_THROWS_AS(parameter("{/a}", valued("{}")), pawl::PermanentError);
  CHECK_THROWS_AS(parameter("{/a}", valued("not json")), pawl::PermanentError);
  CHECK_THROWS_AS(parameter("{/a?}", valued("not json")), JsonError);
}

TEST_CASE("a parameter of a megabyte is passed on whole") {
  const std::string big(1U << 20U, 'x');
  CHECK(parameter("{/a}", valued("{\"a\": \"" + big + "\\n\"}")) == big + "\n");
  CHECK(parameter("{value}", valued(big)) == big);
}

TEST_CASE("only a single placeholder is a parameter") {
  CHECK_THROWS_AS(parameter("x{/a}", valued("{}")), std::logic_error);
}
