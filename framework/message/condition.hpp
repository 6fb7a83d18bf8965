#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "message/json.hpp"
#include "message/placeholder.hpp"
#include "message/syntax_error.hpp"
#include "pawl/message.hpp"

namespace pawl::message {

/// The `when` of a handler: which messages it takes. The operators are those of the Common
/// Expression Language (CEL), over placeholders and strings:
///
///     {header:type} == "refund" && !({/test} == "true" || {/amount} in ["0", "0.00"])
///     has({/order/id}) && {/order/state} != 'draft'
///
///     condition  = and *( "||" and )
///     and        = not *( "&&" not )
///     not        = "!" not | "(" condition ")" | "has" "(" placeholder ")" | comparison
///     comparison = operand ( "==" | "!=" ) operand | operand "in" "[" string *( "," string ) "]"
///     operand    = placeholder | string          ; at least one of the two is a placeholder
///     string     = "..." or '...' with \\ \" \' \n \r \t
///
/// Everything compares as text, byte by byte (so 1.0 and 1 differ). What is missing or null
/// (Placeholder's table) never equals anything, not even another missing one: == is false, != is
/// true, `in` is false; a trailing ? of a placeholder changes nothing here. has() asks whether
/// there is a value. && and || stop as soon as the outcome is known, so a condition may look at a
/// header first and parse JSON only where that matches.
///
/// Parsed once; immutable, any thread.
class Condition {
 public:
  /// Throws ConditionError or TemplateError, with positions in `text`.
  [[nodiscard]] static Condition parse(std::string_view text);

  /// Throws MessageError when a field of the value is asked for and the value is not JSON.
  [[nodiscard]] bool matches(const Message& message, JsonView& json) const;

  [[nodiscard]] const std::string& text() const { return text_; }

 private:
  friend class ConditionParser;

  enum class Operator { kOr, kAnd, kNot, kHas, kEqual, kNotEqual, kIn };
  using Operand = std::variant<std::string, Placeholder>;

  struct Node {
    Operator op = Operator::kOr;
    std::vector<Node> children;     // kOr, kAnd: two or more; kNot: one
    std::vector<Operand> operands;  // kHas: one; comparisons: two; kIn: the operand, then the list
  };

  static bool evaluate(const Node& node, const Message& message, JsonView& json);
  static bool equal(const Operand& left, const Operand& right, const Message& message,
                    JsonView& json);

  std::string text_;
  Node root_;
};

}  // namespace pawl::message
