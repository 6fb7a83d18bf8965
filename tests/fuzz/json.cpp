// The JSON index and JSON pointers, compared with another JSON parser.
#include <nlohmann/json.hpp>

#include "fuzz.hpp"
#include "message/confluent.hpp"
#include "message/json.hpp"

using namespace pawl::message;
using pawl::fuzzing::require;
using Json = nlohmann::json;

namespace {

enum class Verdict { kAccepted, kRefused, kDiffersByDesign };

/// The other parser takes a NUL for the end of the text, and refuses numbers beyond double and
/// unpaired surrogates, which pawl keeps. pawl refuses deeper nesting.
Verdict verdict_of(std::string_view text, Json& parsed) {
  if (text.find('\0') != std::string_view::npos)
    return Verdict::kRefused;
  std::size_t depth = 0;
  std::size_t deepest = 0;
  for (const char c : text) {
    depth += c == '[' || c == '{' ? 1 : 0;
    deepest = std::max(deepest, depth);
    depth -= (c == ']' || c == '}') && depth > 0 ? 1 : 0;
  }
  if (deepest > JsonReader::kMaxDepth)
    return Verdict::kDiffersByDesign;
  try {
    parsed = Json::parse(text);
    return Verdict::kAccepted;
  } catch (const Json::exception& error) {
    const std::string_view what = error.what();
    const bool by_design = error.id == 406 || what.find("surrogate") != std::string_view::npos;
    return by_design ? Verdict::kDiffersByDesign : Verdict::kRefused;
  }
}

JsonKind kind_of(const Json& json) {
  if (json.is_object())
    return JsonKind::kObject;
  if (json.is_array())
    return JsonKind::kArray;
  if (json.is_string())
    return JsonKind::kString;
  if (json.is_boolean())
    return json.get<bool>() ? JsonKind::kTrue : JsonKind::kFalse;
  return json.is_null() ? JsonKind::kNull : JsonKind::kNumber;
}

/// Many values are looked up, so a large document is compared in part.
struct Budget {
  int values = 200;
};

void compare(const Json& expected, const JsonReader& reader, const std::string& path,
             Budget& budget) {
  if (--budget.values < 0)
    return;
  const auto value = reader.find(JsonPointer::parse(path));
  require(value.has_value(), "a value of the document is found", path);
  require(value->kind() == kind_of(expected), "a value has its kind", path);
  require(Json::parse(value->raw()) == expected, "a value's raw text is the value", path);
  std::string scratch;
  const auto text = value->text(scratch);
  require(text.has_value(), "a value has a text", path);
  if (expected.is_string())
    require(*text == expected.get_ref<const std::string&>(), "a string has its characters", path);
  else
    require(*text == value->raw(), "the text of other values is their raw text", path);
  if (expected.is_array()) {
    const auto last = std::to_string(expected.size());
    require(!reader.find(JsonPointer::parse(path + "/" + last)), "no value follows the last", path);
  }
  if (!expected.is_structured())
    return;
  for (const auto& [name, child] : expected.items())
    compare(child, reader, path + "/" + JsonPointer::escaped(name), budget);
}

void check_members(const Json& expected, const JsonReader& reader) {
  const auto members = reader.members();
  require(members.size() == (expected.is_object() ? expected.size() : 0),
          "members are those of the object");
  for (const auto& member : members) {
    require(member.name && expected.contains(*member.name), "a member has its name");
    require(Json::parse(member.value.raw()) == expected[*member.name],
            "of members with one name the last counts");
  }
}

}  // namespace

void fuzz(std::string_view input) {
  // Kept between inputs, as by a worker.
  static JsonReader reader;
  Json expected;
  const auto verdict = verdict_of(input, expected);
  bool accepted = true;
  try {
    reader.read(input);
  } catch (const JsonError& error) {
    accepted = false;
    require(!error.byte() || *error.byte() <= input.size(), "an error is within the document");
  }
  if (verdict == Verdict::kDiffersByDesign) {
    if (accepted)
      (void)reader.members();
    return;
  }
  require(accepted == (verdict == Verdict::kAccepted), "both parsers accept the same documents");
  if (!accepted)
    return;
  Budget budget;
  compare(expected, reader, "", budget);
  check_members(expected, reader);
}
