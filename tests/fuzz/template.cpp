// Templates and placeholders: a line with the template, then two messages, of which the second
// begins behind a line with "--".
#include "message/template.hpp"

#include <algorithm>
#include <string>
#include <vector>

#include "message.hpp"
#include "message/base64.hpp"
#include "message/hexadecimal.hpp"
#include "message/json_pointer.hpp"
#include "message/message_error.hpp"

using namespace pawl::message;
using pawl::fuzzing::LinesMessage;
using pawl::fuzzing::require;

namespace {

std::string doubled_braces(std::string_view text) {
  std::string result;
  for (const char c : text) {
    result += c;
    if (c == '{' || c == '}')
      result += c;
  }
  return result;
}

void check_literal(std::string_view text, const pawl::Message& message) {
  const auto parsed = Template::parse(doubled_braces(text));
  require(parsed.placeholders().empty(), "doubled braces are literal");
  require(parsed.leading_text() == text, "a literal is its own leading text");
  JsonReader reader;
  JsonView json(reader, message);
  std::string out;
  parsed.render_text(message, json, {}, out);
  require(out == text, "a literal renders as itself");
}

/// A header or member of any name can be named.
void check_source(std::string_view name) {
  if (name.empty())
    return;
  const auto header =
      Template::parse("{" + Placeholder::escaped("header:" + std::string(name)) + "?}");
  require(header.is_single_placeholder(), "an escaped source is one placeholder", name);
  const auto& placeholder = *header.placeholders().front();
  require(placeholder.is_optional() && placeholder.sources().size() == 1 &&
              placeholder.sources().front().header == name,
          "an escaped header has its name", name);
  const auto member =
      Template::parse("{" + Placeholder::escaped("/" + JsonPointer::escaped(name)) + "}");
  const auto& tokens = member.placeholders().front()->sources().front().pointer.tokens();
  require(tokens.size() == 1 && tokens.front().name == name, "an escaped member has its name",
          name);
}

std::string key_of(const Template& parsed, const pawl::Message& message) {
  JsonReader reader;
  JsonView json(reader, message);
  try {
    const auto key = parsed.render_key(message, json);
    const auto* text = std::get_if<KeyText>(&key);
    require(text == nullptr || !text->text.empty(), "a key is not empty");
    return text == nullptr ? "" : text->text;
  } catch (const MessageError&) {
    return "";
  }
}

/// What the key's placeholders have, one after the other; an empty value is as good as none.
std::vector<std::string> values_of(const Template& parsed, const pawl::Message& message) {
  JsonReader reader;
  JsonView json(reader, message);
  std::vector<std::string> values;
  std::string scratch;
  for (const auto* placeholder : parsed.placeholders())
    values.emplace_back(placeholder->resolve_nonempty(message, json, scratch).text);
  return values;
}

/// Messages with distinct values have distinct keys.
void check_key(const std::string& text, const pawl::Message& one, const pawl::Message& other) {
  try {
    const auto parsed = Template::parse_key(text);
    const auto key = key_of(parsed, one);
    if (!key.empty() && key == key_of(parsed, other))
      require(values_of(parsed, one) == values_of(parsed, other), "a key identifies its values",
              key);
  } catch (const TemplateError&) {
  }
}

void check_parameter(const Template& parsed, const pawl::Message& message) {
  if (!parsed.is_single_placeholder())
    return;
  JsonReader reader;
  JsonView json(reader, message);
  try {
    const auto value = parsed.render_parameter(message, json);
    std::string scratch;
    const auto bytes = parsed.render_bytes(message, json, scratch);
    require(value == bytes, "a parameter's text is its bytes");
    require(!value || value->find('\0') == std::string::npos, "a parameter has no NUL");
  } catch (const MessageError&) {
  }
}

void check_base64(std::string_view text) {
  const auto encoded = base64(text);
  require(from_base64(encoded) == text, "base64 keeps the bytes");
  try {
    require(base64(from_base64(text)) == text, "a text that is base64 encodes its bytes", text);
  } catch (const std::invalid_argument&) {
  }
}

}  // namespace

void fuzz(std::string_view input) {
  const auto text = std::string(pawl::fuzzing::take_line(input));
  const auto end = std::min(input.find("\n--\n"), input.size());
  auto first = input.substr(0, end);
  auto second = input.substr(std::min(input.size(), end + 4));
  const LinesMessage one(first);
  const LinesMessage other(second);
  check_literal(text, one.view());
  check_source(text);
  check_base64(text);
  check_key(text, one.view(), other.view());
  try {
    const auto parsed = Template::parse(text);
    require(parsed.text() == text, "a template has its text");
    check_parameter(parsed, one.view());
    // The placeholders' own texts, in the place of the values, are the template.
    std::string again;
    for (const auto* placeholder : parsed.placeholders()) {
      const Template alone(*placeholder);
      require(alone.is_single_placeholder(), "a placeholder alone is a template");
      require(text.find(alone.text()) != std::string::npos, "a placeholder is in the text", text);
      require(Template::parse(alone.text()).placeholders().size() == 1,
              "a placeholder's text is a placeholder", alone.text());
    }
  } catch (const TemplateError& error) {
    require(error.column() >= 1 && error.column() <= text.size() + 1, "an error is in the text");
  }
}
