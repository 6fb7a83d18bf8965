#include "message/json.hpp"

#include <fmt/format.h>
#include <simdjson.h>

#include <cstdint>
#include <cstring>
#include <limits>
#include <new>
#include <unordered_map>
#include <utility>
#include <vector>

#include "message/confluent.hpp"
#include "message/json_index.hpp"

namespace pawl::message {
namespace {

namespace ondemand = simdjson::ondemand;

constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
constexpr std::string_view kRemedy = "Fix the producer";
// Buffers that one large message has grown beyond this are given back at the next smaller one.
constexpr std::size_t kKeptBytes = std::size_t{1} << 20U;

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
  std::vector<JsonNode> nodes;

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
    if (parser.capacity() < length) {
      // One level for the wrapper, one for the value that is found to be too deep.
      const auto allocated = parser.allocate(length, JsonReader::kMaxDepth + 2);
      if (allocated != simdjson::SUCCESS)
        throw std::bad_alloc{};
    }
    ondemand::document document;
    const auto error = parser.iterate(buffer.data(), length, buffer.size()).get(document);
    if (error != simdjson::SUCCESS)
      throw InvalidJson{nullptr, stage_one_reason(error)};
    index_json(document, buffer.data(), length, nodes);
  }

  [[nodiscard]] std::string_view slice(std::uint32_t begin, std::uint32_t end) const {
    return {buffer.data() + begin, end - begin};
  }

  // The last of several members of one name counts, so all of them are looked at.
  [[nodiscard]] const JsonNode* member(const JsonNode& object, std::string_view name) const {
    const JsonNode* found = nullptr;
    std::string scratch;
    for (std::size_t i = index(object) + 1; i < object.next; i = nodes[i].next) {
      const auto key = unescape(slice(nodes[i].key_begin, nodes[i].key_end), scratch);
      if (key == name)
        found = &nodes[i];
    }
    return found;
  }

  [[nodiscard]] const JsonNode* element(const JsonNode& array,
                                        std::optional<std::size_t> wanted) const {
    if (!wanted)
      return nullptr;
    std::size_t left = *wanted;
    for (std::size_t i = index(array) + 1; i < array.next; i = nodes[i].next) {
      if (left-- == 0)
        return &nodes[i];
    }
    return nullptr;
  }

  [[nodiscard]] std::size_t index(const JsonNode& node) const {
    return static_cast<std::size_t>(&node - nodes.data());
  }
};

std::string_view without_byte_order_mark(std::string_view text) {
  if (text.starts_with(kByteOrderMark))
    text.remove_prefix(kByteOrderMark.size());
  return text;
}

JsonReader::JsonReader() : impl_(std::make_unique<Impl>()) {}
JsonReader::~JsonReader() = default;
JsonReader::JsonReader(JsonReader&&) noexcept = default;
JsonReader& JsonReader::operator=(JsonReader&&) noexcept = default;

void JsonReader::read(std::string_view text) {
  const std::string_view document = without_byte_order_mark(text);
  const std::size_t skipped = text.size() - document.size();
  if (text.empty()) {
    throw JsonError(fmt::format("the message's value is empty, so it is not JSON. {}", kRemedy), 0);
  }
  if (const auto schema = confluent_schema(text))
    throw JsonError(fmt::format("the message's value has {}. {}", *schema, kRemedy), 0);
  if (text.size() > std::numeric_limits<std::uint32_t>::max() - 64) {
    throw JsonError(fmt::format("the message's value is larger than 4 GiB. {}", kRemedy),
                    std::nullopt);
  }
  try {
    impl_->parse(impl_->fill(document));
  } catch (const InvalidJson& invalid) {
    if (invalid.where == nullptr) {
      throw JsonError(
          fmt::format("the message's value is not JSON: {}. {}", invalid.reason, kRemedy),
          std::nullopt);
    }
    // The wrapper's opening bracket is not the producer's.
    const auto at = static_cast<std::size_t>(invalid.where - impl_->buffer.data());
    const std::size_t byte = skipped + (at == 0 ? 0 : at - 1);
    throw JsonError(fmt::format("the message's value is not JSON: {} at byte {}. {}",
                                invalid.reason, byte, kRemedy),
                    byte);
  }
}

std::optional<JsonValue> JsonReader::find(const JsonPointer& pointer) const {
  const JsonNode* node = &impl_->nodes.front();
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

std::vector<JsonMember> JsonReader::members() const {
  const auto& nodes = impl_->nodes;
  std::vector<JsonMember> members;
  if (nodes.front().kind != JsonKind::kObject)
    return members;
  std::unordered_map<std::string, std::size_t> places;
  std::string scratch;
  for (std::size_t i = 1; i < nodes.front().next; i = nodes[i].next) {
    const auto written = impl_->slice(nodes[i].key_begin, nodes[i].key_end);
    const JsonValue value{nodes[i].kind, impl_->slice(nodes[i].begin, nodes[i].end)};
    const auto name = unescape(written, scratch);
    if (!name) {
      members.push_back({written, std::nullopt, value});
      continue;
    }
    const auto [place, first] = places.emplace(*name, members.size());
    if (first) {
      members.push_back({written, place->first, value});
    } else {
      members[place->second].value = value;
    }
  }
  return members;
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
