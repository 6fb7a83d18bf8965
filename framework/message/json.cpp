#include "message/json.hpp"

#include <fmt/format.h>
#include <simdjson.h>

#include <cstdint>
#include <cstring>
#include <limits>
#include <new>
#include <utility>
#include <vector>

namespace pawl::message {
namespace {

namespace ondemand = simdjson::ondemand;

constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
constexpr std::string_view kRemedy = "correct the producer, or skip the message";
// Buffers that one large message has grown beyond this are given back at the next smaller one.
constexpr std::size_t kKeptBytes = std::size_t{1} << 20U;

// A value of the document. Values stand in the order of the text, each container directly before
// what it contains. Positions are offsets into the reader's buffer.
struct Node {
  JsonKind kind = JsonKind::kNull;
  std::uint32_t begin = 0;
  std::uint32_t end = 0;
  std::uint32_t key_begin = 0;  // of an object's member, without the quotes
  std::uint32_t key_end = 0;
  std::uint32_t next = 0;  // the first node that is not within this one
};

// JsonError's byte is added by the walk, which knows where the document begins.
struct Invalid {
  const char* where;  // nullptr: unknown
  std::string_view reason;
};

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

// Resolving escapes needs a parser, but nothing of its state: one serves every thread.
const ondemand::parser& unescaping_parser() {
  static const ondemand::parser parser = [] {
    ondemand::parser allocated;
    if (allocated.allocate(simdjson::SIMDJSON_PADDING) != simdjson::SUCCESS)
      throw std::bad_alloc{};
    return allocated;
  }();
  return parser;
}

// The characters of a string that stands between quotes as `raw`; nullopt for unpaired surrogates.
std::optional<std::string_view> unescape(std::string_view raw, std::string& scratch) {
  if (raw.find('\\') == std::string_view::npos)
    return raw;
  // simdjson reads past the closing quote and writes in blocks: `raw` is followed by that quote and
  // the buffer's padding, and so is the target.
  scratch.resize(raw.size() + simdjson::SIMDJSON_PADDING);
  auto* target = reinterpret_cast<std::uint8_t*>(scratch.data());
  const ondemand::raw_json_string string{reinterpret_cast<const std::uint8_t*>(raw.data())};
  std::string_view text;
  if (unescaping_parser().unescape(string, target).get(text) != simdjson::SUCCESS) {
    return std::nullopt;
  }
  // Old releases let an unpaired low surrogate through as three bytes that are not UTF-8.
  if (!simdjson::validate_utf8(text.data(), text.size()))
    return std::nullopt;
  scratch.resize(text.size());
  return scratch;
}

// Visits the whole document once, checks what simdjson's On Demand interface leaves to its user,
// and writes down the nodes. Throws Invalid.
class Walk {
 public:
  Walk(ondemand::document& document, const char* buffer, const char* buffer_end,
       std::vector<Node>& nodes)
      : document_(document), buffer_(buffer), buffer_end_(buffer_end), nodes_(nodes) {}

  // The document is wrapped into an array, so that a lone number or string is handled like any
  // other value and nothing may stand behind it.
  void document() {
    ondemand::array wrapper;
    check(document_.get_array().get(wrapper));
    std::size_t count = 0;
    for (auto element : wrapper) {
      ondemand::value root;
      check(std::move(element).get(root));
      if (++count > 1)
        fail(location(), "there is more than one value");
      value(root, 1, Node{});
    }
    if (count == 0)
      fail(nullptr, "there is no value");
    // At the end, and only there, no location can be had.
    if (document_.current_location().error() == simdjson::SUCCESS) {
      fail(location(), "something stands behind the value");
    }
  }

 private:
  void value(ondemand::value& value, std::size_t depth, Node node) {
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

  void container(ondemand::value& value, std::size_t depth, Node node) {
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
      Node node;
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
      this->value(element, depth + 1, Node{});
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
    throw Invalid{where, reason};
  }

  ondemand::document& document_;
  const char* buffer_;
  const char* buffer_end_;
  std::vector<Node>& nodes_;
};

std::string_view stage_one_reason(simdjson::error_code error) {
  switch (error) {
    case simdjson::UTF8_ERROR:
      return "it is not valid UTF-8";
    case simdjson::UNCLOSED_STRING:
      return "a string is not closed";
    case simdjson::UNESCAPED_CHARS:
      return "a string contains an unescaped control character";
    default:
      return "its structure is broken";
  }
}

}  // namespace

struct JsonReader::Impl {
  ondemand::parser parser;
  std::vector<char> buffer;
  std::vector<Node> nodes;

  // Lays "[", the document, "]" and simdjson's padding into the buffer; returns their length
  // without the padding.
  std::size_t fill(std::string_view text) {
    if (buffer.size() > kKeptBytes && text.size() < kKeptBytes / 2)
      release();
    const std::size_t length = text.size() + 2;
    if (buffer.size() < length + simdjson::SIMDJSON_PADDING) {
      buffer.resize(length + simdjson::SIMDJSON_PADDING);
    }
    buffer[0] = '[';
    if (!text.empty())
      std::memcpy(buffer.data() + 1, text.data(), text.size());
    buffer[length - 1] = ']';
    std::memset(buffer.data() + length, ' ', simdjson::SIMDJSON_PADDING);
    return length;
  }

  void release() {
    parser = ondemand::parser{};
    buffer = {};
    nodes = {};
  }

  void parse(std::size_t length) {
    nodes.clear();
    ondemand::document document;
    const auto error = parser.iterate(buffer.data(), length, buffer.size()).get(document);
    if (error != simdjson::SUCCESS)
      throw Invalid{nullptr, stage_one_reason(error)};
    Walk{document, buffer.data(), buffer.data() + length, nodes}.document();
  }

  [[nodiscard]] std::string_view slice(std::uint32_t begin, std::uint32_t end) const {
    return {buffer.data() + begin, end - begin};
  }

  // The last of several members of one name counts, so all of them are looked at.
  [[nodiscard]] const Node* member(const Node& object, std::string_view name) const {
    const Node* found = nullptr;
    std::string scratch;
    for (std::size_t i = index(object) + 1; i < object.next; i = nodes[i].next) {
      const auto key = unescape(slice(nodes[i].key_begin, nodes[i].key_end), scratch);
      if (key == name)
        found = &nodes[i];
    }
    return found;
  }

  [[nodiscard]] const Node* element(const Node& array, std::optional<std::size_t> wanted) const {
    if (!wanted)
      return nullptr;
    std::size_t left = *wanted;
    for (std::size_t i = index(array) + 1; i < array.next; i = nodes[i].next) {
      if (left-- == 0)
        return &nodes[i];
    }
    return nullptr;
  }

  [[nodiscard]] std::size_t index(const Node& node) const {
    return static_cast<std::size_t>(&node - nodes.data());
  }
};

JsonReader::JsonReader() : impl_(std::make_unique<Impl>()) {}
JsonReader::~JsonReader() = default;
JsonReader::JsonReader(JsonReader&&) noexcept = default;
JsonReader& JsonReader::operator=(JsonReader&&) noexcept = default;

void JsonReader::read(std::string_view text) {
  const std::size_t skipped = text.starts_with(kByteOrderMark) ? kByteOrderMark.size() : 0;
  const std::string_view document = text.substr(skipped);
  if (text.empty()) {
    throw JsonError(fmt::format("the message's value is empty and not JSON; {}", kRemedy), 0);
  }
  if (text.size() > std::numeric_limits<std::uint32_t>::max() - 64) {
    throw JsonError(fmt::format("the message's value is larger than 4 GiB; {}", kRemedy),
                    std::nullopt);
  }
  try {
    impl_->parse(impl_->fill(document));
  } catch (const Invalid& invalid) {
    if (invalid.where == nullptr) {
      throw JsonError(
          fmt::format("the message's value is not JSON: {}; {}", invalid.reason, kRemedy),
          std::nullopt);
    }
    // The wrapper's opening bracket is not the producer's.
    const auto at = static_cast<std::size_t>(invalid.where - impl_->buffer.data());
    const std::size_t byte = skipped + (at == 0 ? 0 : at - 1);
    throw JsonError(fmt::format("the message's value is not JSON: {} at byte {}; {}",
                                invalid.reason, byte, kRemedy),
                    byte);
  }
}

std::optional<JsonValue> JsonReader::find(const JsonPointer& pointer) const {
  const Node* node = &impl_->nodes.front();
  for (const JsonPointer::Token& token : pointer.tokens()) {
    if (node->kind == JsonKind::kObject) {
      node = impl_->member(*node, token.name);
    } else if (node->kind == JsonKind::kArray) {
      node = impl_->element(*node, token.index);
    } else {
      node = nullptr;
    }
    if (node == nullptr)
      return std::nullopt;
  }
  return JsonValue{node->kind, impl_->slice(node->begin, node->end)};
}

std::optional<std::string_view> JsonValue::text(std::string& scratch) const {
  if (kind_ != JsonKind::kString)
    return raw_;
  return unescape(raw_.substr(1, raw_.size() - 2), scratch);
}

std::optional<JsonValue> JsonView::find(const JsonPointer& pointer) {
  if (!text_)
    return std::nullopt;
  if (error_)
    throw JsonError{*error_};
  if (!read_) {
    try {
      reader_->read(*text_);
      read_ = true;
    } catch (const JsonError& error) {
      error_ = error;
      throw;
    }
  }
  return reader_->find(pointer);
}

}  // namespace pawl::message
