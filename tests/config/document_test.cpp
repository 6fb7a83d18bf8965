#include "config/document.hpp"

#include "config/values.hpp"
#include "prelude.hpp"

using namespace pawl::config;

namespace {

Node parsed(const std::string& text) {
  const auto source = std::make_shared<Source>();
  source->name = "a.toml";
  source->text = text;
  std::vector<Problem> problems;
  return parse_document(source, problems).value();
}

std::string place(const std::string& text, const TextPlace& at) {
  const Node root = parsed(text);
  return root.member("v")->where_at(at).value_or("none");
}

}  // namespace

TEST_CASE("a place in a string is a place in the file") {
  CHECK(place("\nv = \"abc\"\n", {1, 1}) == "a.toml:2:6");
  CHECK(place("\nv = 'abc'\n", {1, 3}) == "a.toml:2:8");
  CHECK(place("v = \"äöü\"\n", {1, 3}) == "a.toml:1:8");
  CHECK(place("\"v\"  =   'abc'\n", {1, 1}) == "a.toml:1:11");
  CHECK(place("\xef\xbb\xbfv = 'abc'\n", {1, 2}) == "a.toml:1:7");
}

TEST_CASE("a place in a string of several lines is a place in the file") {
  CHECK(place("v = \"\"\"\nab\ncd\"\"\"\n", {1, 2}) == "a.toml:2:2");
  CHECK(place("v = \"\"\"\nab\ncd\"\"\"\n", {2, 1}) == "a.toml:3:1");
  CHECK(place("v = '''ab\ncd'''\n", {1, 2}) == "a.toml:1:9");
  CHECK(place("v = '''ab\ncd'''\n", {2, 2}) == "a.toml:2:2");
}

TEST_CASE("a string with escapes has no places in the file") {
  CHECK(place("v = \"a\\tb\"\n", {1, 3}) == "none");
  CHECK(place("v = \"\"\"a\\\n  b\"\"\"\n", {1, 2}) == "none");
}

TEST_CASE("a merged tree keeps the place of every value") {
  Node base = parsed("[a]\nx = 1\ny = [1, 2]\n[b]\nz = 1\n");
  const Node over = parsed("[a]\n\ny = [3]\n");
  merge(base, over);
  CHECK(base.member("a")->member("x")->where() == "a.toml:2");
  CHECK(base.member("a")->member("y")->where() == "a.toml:3");
  CHECK(base.member("a")->member("y")->items.size() == 1);
  CHECK(base.member("b")->member("z")->integer == 1);
}

TEST_CASE("a time needs a time zone") {
  CHECK(parse_time("1970-01-01T00:00:01.5Z") == 1500);
  CHECK(parse_time("1970-01-01T01:00:00+01:00") == 0);
  CHECK(parse_time("1969-12-31T23:59:59.9999Z") == -1);
  // Beyond what nanoseconds in 64 bits can express.
  CHECK(parse_time("9999-12-31T23:59:59.999Z") == 253'402'300'799'999);
  CHECK(parse_time("1970-01-01T00:00:01") == std::nullopt);
  CHECK(parse_time("1970-01-01") == std::nullopt);
  CHECK(parse_time("2026-02-30T00:00:00Z") == std::nullopt);
  CHECK(parse_time("1") == std::nullopt);
  CHECK(parse_time("") == std::nullopt);
}

TEST_CASE("a number with a fraction is printed as one") {
  struct Row {
    const char* written;
    const char* printed;
  };
  const auto row = GENERATE(values<Row>({{"1.0", "1.0"},
                                         {"-0.0", "-0.0"},
                                         {"1e5", "100000.0"},
                                         {"2.50", "2.5"},
                                         {"1e300", "1e+300"},
                                         {"inf", "inf"},
                                         {"-inf", "-inf"},
                                         {"nan", "nan"}}));
  const Node root = parsed("v = "s + row.written);
  CHECK(root.member("v")->written == row.printed);
  CHECK(toml_text(root) == "{ v = "s + row.printed + " }");
}
