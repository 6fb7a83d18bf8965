#include "console/decoded.hpp"

#include "prelude.hpp"

using namespace pawl::cli;

TEST_CASE("bytes are shown as JSON, as text or in hexadecimal, and no more than asked for") {
  CHECK(decode(std::nullopt, 10).form == "null");
  CHECK(decode("", 10).form == "text");
  CHECK(decode("{\"a\":1.10}", 100).form == "json");
  CHECK(decode("{\"a\":1.10}", 100).text == "{\"a\":1.10}");
  CHECK(decode("plain", 100).form == "text");
  CHECK(decode(std::string_view("\0\x01", 2), 100).text == "0001");
  CHECK(decode("\xff", 100).form == "hex");
  CHECK(decode("\033[2J", 100).form == "hex");
  const auto cut = decode("{\"a\":\"bcdef\"}", 6);
  CHECK(cut.form == "text");
  CHECK(cut.cut);
  CHECK(cut.bytes == 13);
  CHECK(cut.text.size() == 6);
  // Not within a character.
  CHECK(decode("\u00fc\u00fc", 3).text == "\u00fc");
}

TEST_CASE("machines get bytes as text or base64, with a mark where they are cut") {
  CHECK(readable(std::nullopt).is_null());
  CHECK(readable("") == Json(""));
  CHECK(readable("a\033\u00fc") == "a\033\u00fc");
  CHECK(readable("\xff") == Json{{"base64", "/w=="}});
  CHECK(readable("\u00fc\u00fc", 3) == Json{{"text", "\u00fc"}, {"cut", true}});
  CHECK(readable("\xff\xff", 1) == Json{{"base64", "/w=="}, {"cut", true}});
  CHECK(readable("\u00fc", 2) == "\u00fc");
}

TEST_CASE("JSON for people has a line per member, and keeps its numbers and strings") {
  CHECK(indented_json(R"({"a":1.10, "b" : [1,{}, []],"c":{"d":"e, {f: \"g\\"},"h":[]})") ==
        "{\n"
        "  \"a\": 1.10,\n"
        "  \"b\": [\n"
        "    1,\n"
        "    {},\n"
        "    []\n"
        "  ],\n"
        "  \"c\": {\n"
        "    \"d\": \"e, {f: \\\"g\\\\\"\n"
        "  },\n"
        "  \"h\": []\n"
        "}");
  CHECK(indented_json("123456789012345678901234567890") == "123456789012345678901234567890");
  const auto deep = std::string(33, '[') + "1" + std::string(33, ']');
  CHECK(indented_json(deep) == deep);
}
