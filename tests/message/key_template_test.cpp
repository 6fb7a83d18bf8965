#include <map>
#include <random>

#include "message/digest.hpp"
#include "message/template.hpp"
#include "message_builder.hpp"
#include "prelude.hpp"

using namespace pawl::message;

namespace {

// The key's text; "missing: SOURCE" where there is none.
std::string key_of(std::string_view text, const MessageBuilder& builder) {
  const Template key = Template::parse_key(text);
  return with(builder, [&](const pawl::Message& message, JsonView& json) {
    const auto result = key.render_key(message, json);
    if (const auto* missing = std::get_if<Missing>(&result))
      return "missing: " + missing->source;
    return std::get<KeyText>(result).text;
  });
}

}  // namespace

TEST_CASE("a key of one placeholder is the value as it is") {
  CHECK(key_of("{header:event-id}", MessageBuilder{}.header("event-id", "a:b\\c")) == "a:b\\c");
  CHECK(key_of("{key}", MessageBuilder{}.key("k")) == "k");
  CHECK(key_of("{value}", valued("raw \xff bytes")) == "raw \xff bytes");
  CHECK(key_of("{/id}", valued(R"({"id": 10.50})")) == "10.50");
  CHECK(key_of("{/id}", valued(R"({"id": "a\u0000b"})")) == "a\0b"s);
  CHECK(key_of("{/id}", valued(R"({"id": true})")) == "true");
  CHECK(key_of("{/id}", valued(R"({"id": [1, 2]})")) == "[1, 2]");
  CHECK(key_of("{sha256:value}", valued("abc")) == sha256_hex("abc"));
  CHECK(key_of("order:{/id}", valued(R"({"id": "a:b"})")) == "order:a:b");
}

TEST_CASE("coordinates identify a record within one life of the topic") {
  CHECK(key_of("{topic_id}:{partition}:{offset}", MessageBuilder{}) ==
        "dG9waWMtaWQtb2YtcGF3bA:3:42");
  CHECK(key_of("{topic_id}:{partition}:{offset}", MessageBuilder{}.topic_id("")) ==
        "missing: topic_id");
}

TEST_CASE("the last header of a name counts") {
  CHECK(key_of("{header:id}", MessageBuilder{}.header("id", "1").header("id", "2")) == "2");
  CHECK(key_of("{header:id}", MessageBuilder{}.header("id", "1").header("id", std::nullopt)) ==
        "missing: header:id");
}

TEST_CASE("what is missing, null or empty gives no key") {
  CHECK(key_of("{header:id}", MessageBuilder{}) == "missing: header:id");
  CHECK(key_of("{header:id}", MessageBuilder{}.header("ID", "x")) == "missing: header:id");
  CHECK(key_of("{header:id}", MessageBuilder{}.header("id", std::nullopt)) == "missing: header:id");
  CHECK(key_of("{header:id}", MessageBuilder{}.header("id", "")) == "missing: header:id");
  CHECK(key_of("{key}", MessageBuilder{}.key(std::nullopt)) == "missing: key");
  CHECK(key_of("{key}", MessageBuilder{}.key("")) == "missing: key");
  CHECK(key_of("{value}", MessageBuilder{}.value(std::nullopt)) == "missing: value");
  CHECK(key_of("{sha256:value}", MessageBuilder{}.value(std::nullopt)) == "missing: sha256:value");
  CHECK(key_of("{/id}", MessageBuilder{}.value(std::nullopt)) == "missing: /id");
  CHECK(key_of("{/id}", valued(R"({"id": null})")) == "missing: /id");
  CHECK(key_of("{/id}", valued(R"({"id": ""})")) == "missing: /id");
  CHECK(key_of("{/id}", valued("{}")) == "missing: /id");
  CHECK(key_of("{header:a|/b}", valued("{}")) == "missing: header:a|/b");
  CHECK(key_of("pay:{/id}", valued("{}")) == "missing: /id");
}

TEST_CASE("the hash of an empty value is a key, as every hash of something that is there") {
  CHECK(key_of("{sha256:value}", valued("")) == sha256_hex(""));
}

TEST_CASE("of alternatives the first with a value counts") {
  const std::string text = "{header:event-id|/event_id|sha256:value}";
  const std::string value = R"({"event_id": "from-json"})";
  CHECK(key_of(text, valued(value).header("event-id", "from-header")) == "from-header");
  CHECK(key_of(text, valued(value).header("event-id", std::nullopt)) == "from-json");
  CHECK(key_of(text, valued(value)) == "from-json");
  CHECK(key_of(text, valued("{}")) == sha256_hex("{}"));
  // What is empty identifies nothing.
  CHECK(key_of(text, valued(value).header("event-id", "")) == "from-json");
  CHECK(key_of(text, valued(R"({"event_id": ""})").header("event-id", "")) ==
        sha256_hex(R"({"event_id": ""})"));
  CHECK(key_of("{header:event-id|/event_id}", valued("{}").header("event-id", "")) ==
        "missing: header:event-id|/event_id");
  CHECK(key_of("{/tenant}:{header:a|header:b?}",
               valued(R"({"tenant": "t"})").header("a", "").header("b", "x")) == "t:x");
}

TEST_CASE("JSON is not looked at where a header serves") {
  CHECK(key_of("{header:id|/id}", valued("not json").header("id", "1")) == "1");
  CHECK_THROWS_AS(key_of("{header:id|/id}", valued("not json")), JsonError);
}

TEST_CASE("an optional part is left out, but not all that tells messages apart") {
  CHECK(key_of("{/a}:{/b?}", valued(R"({"a": "x"})")) == "x:");
  CHECK(key_of("{/a?}:{/b?}", valued(R"({"b": "y"})")) == ":y");
  CHECK(key_of("{/a?}:{/b?}", valued("{}")) == "missing: /b");
  CHECK(key_of("{topic}:{/b?}", valued("{}")) == "missing: /b");
  CHECK(key_of("{/b?}", valued("{}")) == "missing: /b");
}

TEST_CASE("a missing part tells whether a tombstone could have it") {
  for (const auto& [text, of_value] :
       {std::pair{"{/a}", true}, std::pair{"{sha256:value}", true},
        std::pair{"{header:event-id}", false}, std::pair{"{header:event-id|/a}", true}}) {
    INFO(text);
    const Template key = Template::parse_key(text);
    with(MessageBuilder{}.value(std::nullopt),
         [&, of = of_value](const pawl::Message& message, JsonView& json) {
           const auto result = key.render_key(message, json);
           REQUIRE(std::holds_alternative<Missing>(result));
           CHECK(std::get<Missing>(result).of_value == of);
           return 0;
         });
  }
}

TEST_CASE("a missing part tells its column") {
  const Template key = Template::parse_key("order:{/a}:{/b}");
  with(valued(R"({"a": 1})"), [&](const pawl::Message& message, JsonView& json) {
    const auto result = key.render_key(message, json);
    REQUIRE(std::holds_alternative<Missing>(result));
    CHECK(std::get<Missing>(result).column == 12);
    return 0;
  });
}

TEST_CASE("values in a key of several parts are escaped so that the parts stay apart") {
  const auto key = [](std::string a, std::string b) {
    return key_of("{header:a}:{header:b}",
                  MessageBuilder{}.header("a", std::move(a)).header("b", std::move(b)));
  };
  CHECK(key("x", "y") == "x:y");
  CHECK(key("a:b", "c") == R"(a\:b:c)");
  CHECK(key("a", "b:c") == R"(a:b\:c)");
  CHECK(key("a\\", "b") == R"(a\\:b)");
  CHECK(key("a\\:", "b") == R"(a\\\::b)");
}

TEST_CASE("a string that is no text is an error, not another key") {
  CHECK_THROWS_AS(key_of("{/id}", valued(R"({"id": "\ud800"})")), RenderError);
}

TEST_CASE("different values give different keys, whatever separates them") {
  std::mt19937_64 random{7};
  JsonReader reader;
  const auto below = [&](std::size_t bound) { return random() % bound; };
  // Few characters, so that values are made of separators and escapes.
  const auto value = [&](const std::string& alphabet) {
    std::string text;
    for (std::size_t length = below(5); length > 0; --length)
      text += alphabet[below(alphabet.size())];
    return text;
  };
  for (const auto* text :
       {"{header:a}:{header:b?}:{header:c?}", "{header:a?}::{header:b?}:{header:c}",
        "p:{header:a?}-x\\{header:b?}:\\{header:c}q", "{header:a?}aa{header:b?}ab{header:c}",
        "{header:a}→{header:b?}→→{header:c}", "\\{header:a}|\\\\{header:b?}|{header:c}"}) {
    const std::string alphabet = ":\\-xaqb|pc" + "→"s;
    const Template key_template = Template::parse_key(text);
    std::map<std::string, std::vector<std::string>> seen;
    for (int i = 0; i < 8000; ++i) {
      const std::vector<std::string> values{value(alphabet), value(alphabet), value(alphabet)};
      const auto builder =
          MessageBuilder{}.header("a", values[0]).header("b", values[1]).header("c", values[2]);
      const pawl::Message message = builder.message();
      JsonView json{reader, message};
      const auto rendered = key_template.render_key(message, json);
      if (std::holds_alternative<Missing>(rendered))
        continue;
      const std::string& key = std::get<KeyText>(rendered).text;
      const auto [entry, added] = seen.emplace(key, values);
      if (added || entry->second == values)
        continue;
      CAPTURE(text, key, entry->second, values);
      FAIL("two tuples share a key");
    }
    CHECK(seen.size() > 1000);
  }
}
