// Conditions (`when`): a line with the condition, then a message.
#include "message/condition.hpp"

#include <algorithm>
#include <optional>
#include <string>

#include "message.hpp"
#include "message/message_error.hpp"

using namespace pawl::message;
using pawl::fuzzing::require;

namespace {

/// Nullopt: the message does not allow an answer.
std::optional<bool> matches(const Condition& condition, const pawl::Message& message) {
  JsonReader reader;
  JsonView json(reader, message);
  try {
    return condition.matches(message, json);
  } catch (const MessageError&) {
    return std::nullopt;
  }
}

/// Nullopt: parentheses made it too deep.
std::optional<Condition> parse_composed(const std::string& text) {
  try {
    return Condition::parse(text);
  } catch (const ConditionError& error) {
    require(std::string_view(error.what()).find("nested too deeply") != std::string_view::npos,
            "a condition in parentheses is a condition", error.what());
    return std::nullopt;
  }
}

void check_position(const SyntaxError& error, std::string_view text) {
  const auto lines = 1 + static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n'));
  require(error.line() >= 1 && error.line() <= lines, "an error is on a line of the text", text);
  require(error.column() >= 1 && error.column() <= text.size() + 1, "an error is in the text",
          text);
}

}  // namespace

void fuzz(std::string_view input) {
  const auto text = std::string(pawl::fuzzing::take_line(input));
  const pawl::fuzzing::LinesMessage lines(input);
  const auto message = lines.view();
  std::optional<Condition> condition;
  try {
    condition = Condition::parse(text);
  } catch (const SyntaxError& error) {
    check_position(error, text);
    return;
  }
  require(condition->text() == text, "a condition has its text");
  const auto expected = matches(*condition, message);
  // What the grammar says of parentheses and operators holds for any condition.
  if (const auto same = parse_composed("(" + text + ")"))
    require(matches(*same, message) == expected, "parentheses change nothing", text);
  if (const auto inverse = parse_composed("!(" + text + ")")) {
    const auto found = matches(*inverse, message);
    require(found.has_value() == expected.has_value() && (!found || *found != *expected),
            "! inverts", text);
  }
  if (const auto twice = parse_composed("(" + text + ")&&(" + text + ")"))
    require(matches(*twice, message) == expected, "&& of one condition is the condition", text);
  if (const auto twice = parse_composed("has({header:none})||" + text))
    require(matches(*twice, message) == expected, "|| of false is the condition", text);
  if (const auto never = parse_composed("has({header:none})&&(" + text + ")"))
    require(matches(*never, message) == false, "&& stops at what is false", text);
  if (const auto always = parse_composed("has({topic}) || (" + text + ")"))
    require(matches(*always, message) == true, "|| stops at what is true", text);
}
