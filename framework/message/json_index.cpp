#include "message/json_index.hpp"

#include <cstddef>
#include <utility>

namespace pawl::message {
namespace {

namespace ondemand = simdjson::ondemand;

bool is_white_space(char c) {
  return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}
bool is_digit(char c) {
  return c >= '0' && c <= '9';
}
bool is_hex_digit(char c) {
  return is_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

std::string_view without_trailing_space(std::string_view text) {
  while (!text.empty() && is_white_space(text.back()))
    text.remove_suffix(1);
  return text;
}

// Takes the digits at the front; false when there are none.
bool take_digits(std::string_view& text) {
  const std::size_t before = text.size();
  while (!text.empty() && is_digit(text.front()))
    text.remove_prefix(1);
  return text.size() < before;
}

// RFC 8259, section 6. By hand, because the parser's own check rejects what exceeds 64 bit.
bool is_number(std::string_view text) {
  if (text.starts_with('-'))
    text.remove_prefix(1);
  if (text.starts_with('0')) {
    text.remove_prefix(1);
  } else if (!take_digits(text)) {
    return false;
  }
  if (text.starts_with('.')) {
    text.remove_prefix(1);
    if (!take_digits(text))
      return false;
  }
  if (text.starts_with('e') || text.starts_with('E')) {
    text.remove_prefix(1);
    if (text.starts_with('+') || text.starts_with('-'))
      text.remove_prefix(1);
    if (!take_digits(text))
      return false;
  }
  return text.empty();
}

class Walk {
 public:
  Walk(ondemand::document& document, const char* buffer, const char* buffer_end,
       std::vector<JsonNode>& nodes)
      : document_(document), buffer_(buffer), buffer_end_(buffer_end), nodes_(nodes) {}

  void document() {
    ondemand::array wrapper;
    check(document_.get_array().get(wrapper));
    std::size_t count = 0;
    for (auto element : wrapper) {
      ondemand::value root;
      check(std::move(element).get(root));
      if (++count > 1)
        fail(location(), "there is more than one value");
      value(root, 1, JsonNode{});
    }
    if (count == 0)
      fail(nullptr, "there is no value");
    // At the end, and only there, no location can be had.
    if (document_.current_location().error() == simdjson::SUCCESS) {
      fail(location(), "there is text after the value");
    }
  }

 private:
  void value(ondemand::value& value, std::size_t depth, JsonNode node) {
    const std::string_view token = without_trailing_space(value.raw_json_token());
    if (token.empty())
      fail(location(), "a value is missing");
    node.begin = offset(token.data());
    node.end = offset(token.data() + token.size());
    switch (token.front()) {
      case '{':
      case '[':
        container(value, depth, node);
        return;
      case '"': {
        node.kind = JsonKind::kString;
        ondemand::raw_json_string consumed;
        check(value.get_raw_json_string().get(consumed));
        node.end = offset(closing_quote(token.data() + 1)) + 1;
        break;
      }
      default:
        node.kind = scalar(token);
    }
    node.next = static_cast<std::uint32_t>(nodes_.size() + 1);
    nodes_.push_back(node);
  }

  JsonKind scalar(std::string_view token) {
    if (token == "null")
      return JsonKind::kNull;
    if (token == "true")
      return JsonKind::kTrue;
    if (token == "false")
      return JsonKind::kFalse;
    if (is_number(token))
      return JsonKind::kNumber;
    const bool numeric = is_digit(token.front()) || token.front() == '-';
    fail(token.data(), numeric ? "a number is malformed" : "a value is missing or malformed");
  }

  void container(ondemand::value& value, std::size_t depth, JsonNode node) {
    if (depth > JsonReader::kMaxDepth) {
      fail(buffer_ + node.begin, "arrays and objects are nested deeper than 1024 levels");
    }
    const std::size_t index = nodes_.size();
    const bool is_object = buffer_[node.begin] == '{';
    node.kind = is_object ? JsonKind::kObject : JsonKind::kArray;
    nodes_.push_back(node);
    if (is_object) {
      members(value, depth);
    } else {
      elements(value, depth);
    }
    nodes_[index].next = static_cast<std::uint32_t>(nodes_.size());
    nodes_[index].end = offset(behind_last_bracket());
  }

  void members(ondemand::value& value, std::size_t depth) {
    ondemand::object object;
    check(value.get_object().get(object));
    for (auto result : object) {
      ondemand::field member;
      check(std::move(result).get(member));
      const char* const key = member.key().raw();
      JsonNode node;
      node.key_begin = offset(key);
      node.key_end = offset(closing_quote(key));
      this->value(member.value(), depth + 1, node);
    }
  }

  void elements(ondemand::value& value, std::size_t depth) {
    ondemand::array array;
    check(value.get_array().get(array));
    for (auto result : array) {
      ondemand::value element;
      check(std::move(result).get(element));
      this->value(element, depth + 1, JsonNode{});
    }
  }

  // The bracket that closed the container just visited: the last thing before the next token, which
  // there always is, because of the wrapper.
  const char* behind_last_bracket() {
    const char* next = location();
    if (next == nullptr)
      fail(nullptr, "a bracket is not closed");
    while (is_white_space(next[-1]))
      --next;
    return next;
  }

  // From the first byte of a string to its closing quote; checks the escapes on the way.
  const char* closing_quote(const char* at) const {
    for (; at < buffer_end_; ++at) {
      if (*at == '"')
        return at;
      if (*at == '\\')
        at = escape(at);
    }
    fail(nullptr, "a string is not closed");
  }

  // `at` is the backslash; the result is the last byte of the escape (RFC 8259, section 7).
  static const char* escape(const char* at) {
    const char kind = at[1];
    if (kind == 'u') {
      for (int i = 2; i < 6; ++i) {
        if (!is_hex_digit(at[i]))
          fail(at, "\\u is not followed by four hexadecimal digits");
      }
      return at + 5;
    }
    constexpr std::string_view kKinds = "\"\\/bfnrt";
    if (kKinds.find(kind) == std::string_view::npos)
      fail(at, "an escape in a string is unknown");
    return at + 1;
  }

  void check(simdjson::error_code error) {
    if (error != simdjson::SUCCESS)
      fail(location(), "its structure is broken");
  }

  const char* location() {
    const char* where = nullptr;
    return document_.current_location().get(where) == simdjson::SUCCESS ? where : nullptr;
  }

  [[nodiscard]] std::uint32_t offset(const char* at) const {
    return static_cast<std::uint32_t>(at - buffer_);
  }

  [[noreturn]] static void fail(const char* where, std::string_view reason) {
    throw InvalidJson{where, reason};
  }

  ondemand::document& document_;
  const char* buffer_;
  const char* buffer_end_;
  std::vector<JsonNode>& nodes_;
};

}  // namespace

void index_json(simdjson::ondemand::document& document, const char* buffer, std::size_t length,
                std::vector<JsonNode>& nodes) {
  nodes.clear();
  Walk{document, buffer, buffer + length, nodes}.document();
}

}  // namespace pawl::message
