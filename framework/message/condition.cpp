#include "message/condition.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <optional>
#include <utility>

namespace pawl::message {
namespace {

// Deeper than any condition that a person writes, and far from the stack's end.
constexpr std::size_t kMaxNesting = 100;

bool is_word(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_';
}

}  // namespace

// Recursive descent over the grammar in the header; one function a rule.
class ConditionParser {
 public:
  using Node = Condition::Node;
  using Operator = Condition::Operator;
  using Operand = Condition::Operand;

  explicit ConditionParser(std::string_view text) : text_(text) {}

  Node whole() {
    skip_space();
    if (at_end())
      fail(
          "the condition is empty. Write one such as {header:type} == \"refund\", or remove "
          "`when`");
    Node node = disjunction();
    if (!at_end())
      unexpected("&&, ||, or the end");
    return node;
  }

 private:
  Node disjunction() {
    if (++nesting_ > kMaxNesting)
      fail("nested too deeply. Write a simpler condition");
    Node node = chain(Operator::kOr, "||", [this] {
      return chain(Operator::kAnd, "&&", [this] { return negation(); });
    });
    --nesting_;
    return node;
  }

  template <typename Part>
  Node chain(Operator op, std::string_view symbol, Part part) {
    Node first = part();
    if (!take(symbol))
      return first;
    Node node{op, {}, {}};
    node.children.push_back(std::move(first));
    do {
      node.children.push_back(part());
    } while (take(symbol));
    return node;
  }

  Node negation() {
    bool negated = false;
    while (!rest().starts_with("!=") && take("!"))
      negated = !negated;
    Node node = primary();
    if (!negated)
      return node;
    Node negation{Operator::kNot, {}, {}};
    negation.children.push_back(std::move(node));
    return negation;
  }

  Node primary() {
    if (take("(")) {
      Node node = disjunction();
      expect(")", "a parenthesis is not closed. Write )");
      return node;
    }
    if (is_word(peek()))
      return has();
    return comparison();
  }

  Node has() {
    const std::size_t begin = at_;
    const std::string_view found = word();
    refuse_word_operator(found, begin);
    if (found != "has") {
      fail(begin, fmt::format("unknown word \"{}\". Write has({{...}}) to check whether a value "
                              "exists, and quote text and numbers: \"{}\"",
                              found, found));
    }
    expect("(", "has requires a placeholder in parentheses. Write has({...})");
    if (peek() != '{')
      fail("has() requires a placeholder. Write has({...})");
    Node node{Operator::kHas, {}, {}};
    node.operands.push_back(operand());
    expect(")", "a parenthesis is not closed. Write )");
    return node;
  }

  Node comparison() {
    const std::size_t begin = at_;
    Node node;
    node.operands.push_back(operand());
    if (take("==")) {
      node.op = Operator::kEqual;
    } else if (take("!=")) {
      node.op = Operator::kNotEqual;
    } else if (rest().starts_with("in") && (rest().size() == 2 || !is_word(rest()[2]))) {
      at_ += 2;
      node.op = Operator::kIn;
    } else {
      no_operator();
    }
    skip_space();
    if (node.op == Operator::kIn) {
      list(node);
    } else {
      node.operands.push_back(operand());
    }
    const auto is_placeholder = [](const Operand& operand) {
      return std::holds_alternative<Placeholder>(operand);
    };
    if (std::none_of(node.operands.begin(), node.operands.end(), is_placeholder)) {
      fail(begin,
           "a comparison of two constants. Write a placeholder such as {header:type} on one side");
    }
    return node;
  }

  void list(Node& node) {
    expect("[", "in requires a list. Write in [\"a\", \"b\"]");
    do {
      if (peek() != '"' && peek() != '\'') {
        fail("a list contains strings in quotes. Write in [\"a\", \"b\"]");
      }
      node.operands.emplace_back(string());
    } while (take(","));
    expect("]", "a list is not closed. Write ]");
  }

  Operand operand() {
    const char c = peek();
    if (c == '{') {
      auto [placeholder, end] = Placeholder::parse(text_, at_);
      at_ = end;
      skip_space();
      return std::move(placeholder);
    }
    if (c == '"' || c == '\'')
      return string();
    if (is_word(c) || c == '-') {
      fail("values are compared as text. Put quotes around this value");
    }
    unexpected("a placeholder or a string in quotes");
  }

  std::string string() {
    const std::size_t begin = at_;
    const char quote = text_[at_++];
    std::string result;
    for (; !at_end() && peek() != quote; ++at_)
      result += peek() == '\\' ? escape() : peek();
    if (at_end())
      fail(begin, "a string is not closed. Write its second quote");
    ++at_;
    skip_space();
    return result;
  }

  char escape() {
    const std::size_t backslash = at_++;
    switch (peek()) {
      case '\\':
      case '"':
      case '\'':
        return peek();
      case 'n':
        return '\n';
      case 'r':
        return '\r';
      case 't':
        return '\t';
      default:
        fail(backslash, "unknown escape. Use one of \\\\ \\\" \\' \\n \\r \\t");
    }
  }

  [[noreturn]] void no_operator() {
    if (peek() == '=')
      fail("unknown operator. Write == to compare");
    if (peek() == '<' || peek() == '>') {
      fail("values are compared as text and have no order. Use ==, !=, or in [...]");
    }
    unexpected("==, !=, or in [...]");
  }

  [[noreturn]] void unexpected(std::string_view wanted) {
    const std::size_t begin = at_;
    refuse_word_operator(word(), begin);
    at_ = begin;
    if (rest().starts_with('&') || rest().starts_with('|'))
      fail("unknown operator. Write && for and, || for or");
    fail(fmt::format("{}. Write {} here", at_end() ? "the condition ends too early" : "unexpected",
                     wanted));
  }

  void refuse_word_operator(std::string_view word, std::size_t begin) const {
    for (const std::string_view name : {"and", "or", "not", "AND", "OR", "NOT"}) {
      if (word == name)
        fail(begin, "and, or, and not are not operators. Write &&, ||, and !");
    }
  }

  [[nodiscard]] bool at_end() const { return at_ == text_.size(); }
  [[nodiscard]] char peek() const { return at_end() ? '\0' : text_[at_]; }
  [[nodiscard]] std::string_view rest() const { return text_.substr(at_); }

  std::string_view word() {
    const std::size_t begin = at_;
    while (!at_end() && is_word(peek()))
      ++at_;
    return text_.substr(begin, at_ - begin);
  }

  void skip_space() {
    while (!at_end() && std::isspace(static_cast<unsigned char>(peek())) != 0)
      ++at_;
  }

  bool take(std::string_view symbol) {
    if (!rest().starts_with(symbol))
      return false;
    at_ += symbol.size();
    skip_space();
    return true;
  }

  void expect(std::string_view symbol, std::string_view problem) {
    skip_space();
    if (!take(symbol))
      fail(std::string{problem});
  }

  [[noreturn]] void fail(const std::string& problem) const { fail(at_, problem); }
  [[noreturn]] void fail(std::size_t place, const std::string& problem) const {
    throw ConditionError(text_, place, problem);
  }

  std::string_view text_;
  std::size_t at_ = 0;
  std::size_t nesting_ = 0;
};

Condition Condition::parse(std::string_view text) {
  Condition condition;
  condition.text_ = text;
  condition.root_ = ConditionParser{text}.whole();
  return condition;
}

bool Condition::matches(const Message& message, JsonView& json) const {
  return evaluate(root_, message, json);
}

bool Condition::evaluate(const Node& node, const Message& message, JsonView& json) {
  const auto holds = [&](const Node& child) { return evaluate(child, message, json); };
  const auto& operands = node.operands;
  switch (node.op) {
    case Operator::kOr:
      return std::any_of(node.children.begin(), node.children.end(), holds);
    case Operator::kAnd:
      return std::all_of(node.children.begin(), node.children.end(), holds);
    case Operator::kNot:
      return !holds(node.children.front());
    case Operator::kHas: {
      std::string scratch;
      const Resolved resolved =
          std::get<Placeholder>(operands.front()).resolve(message, json, scratch);
      return resolved.presence == Presence::kValue;
    }
    case Operator::kEqual:
      return equal(operands[0], operands[1], message, json);
    case Operator::kNotEqual:
      return !equal(operands[0], operands[1], message, json);
    case Operator::kIn:
      return std::any_of(operands.begin() + 1, operands.end(), [&](const Operand& operand) {
        return equal(operands.front(), operand, message, json);
      });
  }
  return false;
}

bool Condition::equal(const Operand& left, const Operand& right, const Message& message,
                      JsonView& json) {
  const auto text = [&](const Operand& operand,
                        std::string& scratch) -> std::optional<std::string_view> {
    if (const auto* literal = std::get_if<std::string>(&operand))
      return *literal;
    const Resolved resolved = std::get<Placeholder>(operand).resolve(message, json, scratch);
    if (resolved.presence != Presence::kValue)
      return std::nullopt;
    return resolved.text;
  };
  std::string left_scratch;
  std::string right_scratch;
  const auto left_text = text(left, left_scratch);
  if (!left_text)
    return false;
  const auto right_text = text(right, right_scratch);
  return right_text && *left_text == *right_text;
}

}  // namespace pawl::message
