// Our reader and another JSON parser accept the same documents and see the same values in them.
#include <nlohmann/json.hpp>
#include <random>

#include "message/json.hpp"
#include "prelude.hpp"

using namespace pawl::message;

namespace {

const std::vector<std::string>& seeds() {
  static const std::vector<std::string> documents{
      R"({"a": 1, "b": [true, false, null], "c": {"d": "x\n\u00e9"}})",
      R"([1, -2.50, 3e2, "", "\"", {}, [], [[]]])",
      R"("text")",
      R"(  { "k\\" : [ 0 , "ü" ] , "" : { } }  )",
      R"({"a":{"a":{"a":[{"a":1},{"a":2}]}}})",
      "-0.0",
  };
  return documents;
}

std::string mutate(std::string text, std::mt19937_64& random) {
  // Every byte that matters to the grammar, and some that do not belong.
  static const std::string alphabet = std::string{"{}[]:,\"\\ \n\t0123456789-+.eEtrufalsn/x"} +
                                      '\0' + "\x7f\xc3\xa9\xff\xef\xbb\xbf";
  const auto below = [&](std::size_t bound) {
    return std::uniform_int_distribution<std::size_t>{0, bound - 1}(random);
  };
  for (std::size_t changes = 1 + below(3); changes > 0; --changes) {
    const std::size_t at = below(text.size() + 1);
    const char c = alphabet[below(alphabet.size())];
    switch (below(4)) {
      case 0:
        text.insert(at, 1, c);
        break;
      case 1:
        if (at < text.size())
          text.erase(at, 1 + below(3));
        break;
      case 2:
        if (at < text.size())
          text[at] = c;
        break;
      default: {
        const std::size_t from = below(text.size() + 1);
        text.insert(at, text.substr(from, below(6)));
      }
    }
  }
  return text;
}

enum class Verdict { kAccepted, kRefused, kDiffersByDesign };

// The other parser takes a NUL for the text's end; in JSON none may stand anywhere. It also refuses
// numbers beyond double and unpaired surrogates, which we keep.
Verdict verdict_of(const std::string& text, nlohmann::json& parsed) {
  if (text.find('\0') != std::string::npos)
    return Verdict::kRefused;
  try {
    parsed = nlohmann::json::parse(text);
    return Verdict::kAccepted;
  } catch (const nlohmann::json::exception& error) {
    const std::string what = error.what();
    const bool by_design = error.id == 406 || what.find("surrogate") != std::string::npos;
    return by_design ? Verdict::kDiffersByDesign : Verdict::kRefused;
  }
}

void check_same(const nlohmann::json& expected, const JsonReader& reader, const std::string& path) {
  const auto value = reader.find(JsonPointer::parse(path));
  REQUIRE(value.has_value());
  // The raw text, read again by the other parser, is that value.
  CHECK(nlohmann::json::parse(value->raw()) == expected);
  if (expected.is_string()) {
    std::string scratch;
    CHECK(value->text(scratch) == expected.get<std::string>());
  }
  if (!expected.is_structured())
    return;
  for (const auto& [name, child] : expected.items()) {
    std::string escaped;
    for (const char c : name) {
      if (c == '~') {
        escaped += "~0";
      } else if (c == '/') {
        escaped += "~1";
      } else {
        escaped += c;
      }
    }
    check_same(child, reader, path + "/" + escaped);
  }
}

}  // namespace

TEST_CASE("another JSON parser agrees on 12,000 damaged documents") {
  std::mt19937_64 random{20240607};
  JsonReader reader;
  std::size_t accepted = 0;
  std::size_t refused = 0;
  for (int i = 0; i < 12000; ++i) {
    const std::string text = mutate(seeds()[random() % seeds().size()], random);
    CAPTURE(text);
    nlohmann::json expected;
    const Verdict verdict = verdict_of(text, expected);
    bool read = true;
    try {
      reader.read(text);
    } catch (const JsonError&) {
      read = false;
    }
    if (verdict == Verdict::kDiffersByDesign)
      continue;
    REQUIRE(read == (verdict == Verdict::kAccepted));
    if (read)
      check_same(expected, reader, "");
    (read ? accepted : refused) += 1;
  }
  CHECK(accepted > 500);
  CHECK(refused > 500);
}
