#include "message/json.hpp"

#include "message_builder.hpp"
#include "prelude.hpp"

using namespace pawl::message;

namespace {

std::optional<std::string> text_at(std::string_view document, std::string_view pointer) {
  JsonReader reader;
  reader.read(document);
  const auto value = reader.find(JsonPointer::parse(pointer));
  if (!value)
    return std::nullopt;
  std::string scratch;
  const auto text = value->text(scratch);
  return text ? std::string{*text} : "(no text)"s;
}

JsonError error_of(std::string_view document) {
  try {
    JsonReader{}.read(document);
  } catch (const JsonError& error) {
    return error;
  }
  FAIL("accepted: " << document);
  return JsonError{"", 0};
}

std::string nested(std::size_t depth, const std::string& open, const std::string& close) {
  std::string text;
  for (std::size_t i = 0; i < depth; ++i)
    text += open;
  text += "1";
  for (std::size_t i = 0; i < depth; ++i)
    text += close;
  return text;
}

}  // namespace

TEST_CASE("a JSON pointer finds what RFC 6901 says it finds") {
  // The RFC's own example, section 5.
  const std::string document = R"({"foo": ["bar", "baz"], "": 0, "a/b": 1, "c%d": 2, "e^f": 3,
    "g|h": 4, "i\\j": 5, "k\"l": 6, " ": 7, "m~n": 8})";
  CHECK(text_at(document, "") == document);
  CHECK(text_at(document, "/foo") == R"(["bar", "baz"])");
  CHECK(text_at(document, "/foo/0") == "bar");
  CHECK(text_at(document, "/") == "0");
  CHECK(text_at(document, "/a~1b") == "1");
  CHECK(text_at(document, "/c%d") == "2");
  CHECK(text_at(document, "/e^f") == "3");
  CHECK(text_at(document, "/g|h") == "4");
  CHECK(text_at(document, "/i\\j") == "5");
  CHECK(text_at(document, "/k\"l") == "6");
  CHECK(text_at(document, "/ ") == "7");
  CHECK(text_at(document, "/m~0n") == "8");
}

TEST_CASE("a JSON pointer to nothing finds nothing") {
  const std::string document = R"({"list": [1, 2], "object": {"0": "zero"}, "text": "x"})";
  for (const auto* pointer : {"/list/2", "/list/-", "/list/01", "/list/+1", "/list/x", "/list/",
                              "/list/99999999999999999999", "/text/0", "/nothing", "/object/1",
                              "/object/0/0", "/list/0/0"}) {
    CAPTURE(pointer);
    CHECK_FALSE(text_at(document, pointer).has_value());
  }
  CHECK(text_at(document, "/object/0") == "zero");
}

TEST_CASE("a text that is no JSON pointer is refused at its byte") {
  const auto byte_of = [](std::string_view text) {
    try {
      (void)JsonPointer::parse(text);
    } catch (const JsonPointerError& error) {
      return error.byte();
    }
    return std::string::npos;
  };
  CHECK(byte_of("a") == 0);
  CHECK(byte_of("/a~") == 2);
  CHECK(byte_of("/a/b~2") == 4);
  CHECK(byte_of("/a/b~01") == std::string::npos);
}

TEST_CASE("numbers keep their text exactly") {
  const auto* const number = GENERATE(
      "0", "-0", "0.10", "1.0", "1e400", "-1E-400", "12345678901234567890123456789012345678901",
      "9223372036854775808", "0.1000000000000000055511151231257827", "1E+2");
  CHECK(text_at(std::string{"{\"n\": "} + number + " }", "/n") == number);
  CHECK(text_at(number, "") == number);
}

TEST_CASE("strings give their characters, everything else its JSON text") {
  CHECK(text_at(R"({"a": "x\n\"\\\/\b\f\r\t\u00e9\ud83d\ude00"})", "/a") ==
        "x\n\"\\/\b\f\r\t\u00e9\U0001F600");
  CHECK(text_at(R"({"a": true, "b": false})", "/a") == "true");
  CHECK(text_at(R"({"a": true, "b": false})", "/b") == "false");
  CHECK(text_at(R"({"a": { "x" : [ 1 , {} ] } , "b": 1})", "/a") == R"({ "x" : [ 1 , {} ] })");
  CHECK(text_at(R"( [ ] )", "") == "[ ]");
  CHECK(text_at(R"({"a": ""})", "/a") == "");
  CHECK(text_at(R"("lone")", "") == "lone");
  CHECK(text_at(R"({"a": "x\u0000y"})", "/a") == "x\0y"s);
}

TEST_CASE(
    "a string with an unpaired surrogate has no text, and only matters where it is asked for") {
  const auto* const string =
      GENERATE(R"("\ud800")", R"("\udc00")", R"("\ud800x")", R"("\ud800\u0041")",
               R"("\udfff\ud800")", R"("x\uDBFF\uD800")");
  const std::string document = std::string{R"({"bad": )"} + string + R"(, "good": 1})";
  CHECK(text_at(document, "/bad") == "(no text)");
  CHECK(text_at(document, "/good") == "1");
}

TEST_CASE("of members with the same name the last counts, however it is written") {
  CHECK(text_at(R"({"a": 1, "a": 2})", "/a") == "2");
  CHECK(text_at(R"({"a": 1, "\u0061": [2]})", "/a/0") == "2");
  CHECK(text_at(R"({"a": {"b": 1}, "a": {"c": 2}})", "/a/b") == std::nullopt);
  CHECK(text_at(R"({"a": {"a": 1}})", "/a") == R"({"a": 1})");
}

TEST_CASE("the members of an object are what can be found in it, each once") {
  using Members = std::vector<std::pair<std::string, std::string>>;
  struct Row {
    const char* document;
    Members members;
  };
  const auto row = GENERATE(Catch::Generators::values<Row>({
      {"{}", {}},
      {R"([1, {"a": 2}])", {}},
      {"5", {}},
      {R"({"b": 1, "a": {"c": [2]}, "d": null})",
       {{"b", "1"}, {"a", R"({"c": [2]})"}, {"d", "null"}}},
      {R"({"a": 1, "b": 2, "\u0061": "x"})", {{"a", R"("x")"}, {"b", "2"}}},
      {R"({"": 1, "a\"b": 2})", {{"", "1"}, {"a\"b", "2"}}},
      {R"({"\ud800": 1, "a": 2})", {{"(no text)", "1"}, {"a", "2"}}},
  }));
  JsonReader reader;
  reader.read(row.document);
  Members found;
  for (const auto& member : reader.members())
    found.emplace_back(member.name.value_or("(no text)"), member.value.raw());
  CAPTURE(row.document);
  CHECK(found == row.members);
}

TEST_CASE("a byte order mark before the document is ignored, and counts in positions") {
  CHECK(text_at("\xEF\xBB\xBF{\"a\": 1}", "/a") == "1");
  CHECK(error_of("\xEF\xBB\xBF{\"a\": 01}").byte() == 9);
  CHECK_THROWS_AS(JsonReader{}.read("\xEF\xBB\xBF"), JsonError);
  CHECK(without_byte_order_mark("\xEF\xBB\xBF{}") == "{}");
  CHECK(without_byte_order_mark("{\xEF\xBB\xBF}") == "{\xEF\xBB\xBF}");
  CHECK(without_byte_order_mark("").empty());
}

TEST_CASE("an error behind the field that one asks for is found") {
  for (const auto* document :
       {R"({"a": 1, "b": })", R"({"a": 1, "b": 01})", R"({"a": 1, "b": "\x"})", R"({"a": 1)",
        R"({"a": 1} x)", R"({"a": 1}{})", R"({"a": 1, "b": tru})", R"({"a": 1, "b": [1 2]})",
        R"({"a": 1, "b": "\u12g4"})", R"({"a": 1,})", R"({"a": 1, "b" 2})", R"({"a": 1, 2})",
        R"({"a": 1, "b": ["x": 1]})", R"({"a": 1, "b": {"x"}})", R"({"a": 1, "b": 1.})"}) {
    const auto builder = valued(document);
    const auto message = builder.message();
    JsonReader reader;
    JsonView json{reader, message};
    CAPTURE(document);
    CHECK_THROWS_AS(json.find(JsonPointer::parse("/a")), JsonError);
    CHECK_THROWS_AS(json.find(JsonPointer::parse("/a")), JsonError);  // and stays found
  }
}

TEST_CASE("a JSON error tells the byte, never quotes the payload, and says what to do") {
  const auto error = error_of(R"({"card": "4111-1111", "cvv": 0123})");
  CHECK(error.byte() == 29);
  CHECK(error.what() ==
        "the message's value is not JSON: a number is malformed at byte 29. Fix the producer"s);
  CHECK(error_of("\0\0\0\0\7\2a"s).what() ==
        "the message's value has Confluent schema id 7; pawl reads JSON only. Fix the producer"s);
  CHECK(error_of("[1, x]").byte() == 4);
  CHECK(error_of("{\"a\": 1} {").byte() == 9);
  CHECK(error_of("").byte() == 0);
  CHECK_THAT(error_of("").what(), ContainsSubstring("empty"));
  CHECK_THAT(error_of(" \n").what(), ContainsSubstring("no value"));
}

TEST_CASE("what is not UTF-8, not closed or not escaped is refused") {
  CHECK_THAT(error_of("\"\xff\"").what(), ContainsSubstring("UTF-8"));
  CHECK_THAT(error_of("{\"a\": \"\xed\xa0\x80\"}").what(), ContainsSubstring("UTF-8"));
  CHECK_THAT(error_of("\"abc").what(), ContainsSubstring("not closed"));
  CHECK_THAT(error_of("\"a\nb\"").what(), ContainsSubstring("control character"));
  CHECK_THAT(error_of("\"a\0b\""s).what(), ContainsSubstring("control character"));
  CHECK_THROWS_AS(JsonReader{}.read("1\0"s), JsonError);
  CHECK_THROWS_AS(JsonReader{}.read("\x01\x02\x00\x7f"s), JsonError);
}

TEST_CASE("nesting to 1024 levels is read, deeper is refused without harm") {
  CHECK(text_at(nested(1024, "[", "]"), "/0/0/0").has_value());
  CHECK(text_at(nested(1024, R"({"a":)", "}"), "/a/a/a").has_value());
  CHECK_THAT(error_of(nested(1025, "[", "]")).what(), ContainsSubstring("1024 levels"));
  CHECK_THAT(error_of(nested(1025, R"({"a":)", "}")).what(), ContainsSubstring("1024 levels"));
  CHECK_THAT(error_of(nested(200000, "[", "]")).what(), ContainsSubstring("1024 levels"));
  CHECK_THROWS_AS(JsonReader{}.read(std::string(200000, '[')), JsonError);
}

TEST_CASE("a tombstone has no document, an empty value has a broken one") {
  const auto tombstone = MessageBuilder{}.value(std::nullopt);
  const auto tombstone_message = tombstone.message();
  JsonReader reader;
  JsonView view{reader, tombstone_message};
  CHECK_FALSE(view.find(JsonPointer::parse("/a")).has_value());
  CHECK_FALSE(view.find(JsonPointer::parse("")).has_value());

  const auto empty = valued("");
  const auto empty_message = empty.message();
  JsonView empty_view{reader, empty_message};
  CHECK_THROWS_AS(empty_view.find(JsonPointer::parse("/a")), JsonError);
}

TEST_CASE("a reader serves documents of any size one after the other, also after a broken one") {
  JsonReader reader;
  const auto pointer = JsonPointer::parse("/text");
  for (const std::size_t size : {1U, 100U, 3000000U, 7U, 65536U, 2000000U, 0U}) {
    CAPTURE(size);
    const std::string expected(size, 'x');
    reader.read("{\"text\": \"" + expected + "\"}");
    std::string scratch;
    CHECK(reader.find(pointer)->text(scratch) == expected);
    CHECK_THROWS_AS(reader.read("{\"text\": "), JsonError);
  }
}
