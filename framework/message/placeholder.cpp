#include "message/placeholder.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <optional>

#include "message/digest.hpp"
#include "message/timestamp.hpp"

namespace pawl::message {
namespace {

constexpr std::string_view kHeaderPrefix = "header:";
constexpr std::string_view kHashPrefix = "sha256:";
constexpr std::string_view kKnownSources =
    "header:NAME, key, value, /json/pointer, topic, partition, offset, timestamp, topic_id, or "
    "sha256: and one of these";
constexpr std::string_view kEscapable = "\\|?{} ";

constexpr std::array<std::pair<std::string_view, SourceKind>, 7> kPlainSources{{
    {"key", SourceKind::kKey},
    {"value", SourceKind::kValue},
    {"topic", SourceKind::kTopic},
    {"partition", SourceKind::kPartition},
    {"offset", SourceKind::kOffset},
    {"timestamp", SourceKind::kTimestamp},
    {"topic_id", SourceKind::kTopicId},
}};

// A source's text without the backslashes, and where each of its bytes stands in the whole text.
struct Unescaped {
  std::string text;
  std::vector<std::size_t> places;
  std::size_t begin = 0;
  std::size_t end = 0;

  [[nodiscard]] std::size_t place(std::size_t index) const {
    return index < places.size() ? places[index] : end;
  }
};

bool looks_like_a_name(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](unsigned char c) {
    return std::isalnum(c) != 0 || c == '_' || c == '-' || c == '.';
  });
}

class Parser {
 public:
  Parser(std::string_view text, std::size_t begin) : text_(text), begin_(begin), at_(begin + 1) {}

  std::vector<Source> sources() {
    std::vector<Source> sources;
    do {
      sources.push_back(source(unescaped()));
    } while (take('|'));
    return sources;
  }

  // Behind the sources: an optional '?', then '}'.
  bool optional_mark_and_end() {
    const std::size_t mark = at_;
    const bool optional = take('?');
    if (take('}'))
      return optional;
    if (at_ == text_.size())
      unclosed();
    fail(mark,
         "? must be at the end of a placeholder. Write it before the }, or \\? for a question mark "
         "in a name");
  }

  [[nodiscard]] std::size_t position() const { return at_; }

 private:
  bool take(char c) {
    if (at_ == text_.size() || text_[at_] != c)
      return false;
    ++at_;
    return true;
  }

  Unescaped unescaped() {
    Unescaped result;
    result.begin = at_;
    if (at_ < text_.size() && text_[at_] == ' ')
      blank(at_);
    for (; at_ < text_.size(); ++at_) {
      char c = text_[at_];
      const std::size_t place = at_;
      if (c == '|' || c == '}' || c == '?')
        break;
      if (c == '{') {
        fail(at_, "a { inside a placeholder. Close the placeholder with } first, or write \\{");
      }
      if (c == '\\')
        c = escaped();
      result.text += c;
      result.places.push_back(place);
    }
    result.end = at_;
    if (at_ == text_.size())
      unclosed();
    const bool ends_with_blank = !result.places.empty() && text_[result.places.back()] == ' ';
    if (ends_with_blank)
      blank(result.places.back());
    return result;
  }

  char escaped() {
    if (at_ + 1 == text_.size())
      unclosed();
    const char c = text_[at_ + 1];
    if (kEscapable.find(c) == std::string_view::npos) {
      fail(at_,
           "a backslash in a placeholder must precede one of \\ | ? { } or a space. Write \\\\ for "
           "a backslash");
    }
    ++at_;
    return c;
  }

  Source source(const Unescaped& written) {
    Source source;
    source.text = text_.substr(written.begin, written.end - written.begin);
    std::string_view rest = written.text;
    if (rest.starts_with(kHashPrefix)) {
      source.sha256 = true;
      rest.remove_prefix(kHashPrefix.size());
    }
    const std::size_t skipped = written.text.size() - rest.size();
    if (rest.starts_with('/')) {
      source.kind = SourceKind::kJson;
      source.pointer = pointer(rest, written, skipped);
    } else if (rest.starts_with(kHeaderPrefix)) {
      source.kind = SourceKind::kHeader;
      source.header = rest.substr(kHeaderPrefix.size());
      if (source.header.empty()) {
        fail(written.end, "the header's name is missing. Write {header:NAME}");
      }
    } else {
      source.kind = plain(rest, written.place(skipped));
    }
    return source;
  }

  SourceKind plain(std::string_view name, std::size_t place) {
    for (const auto& [known, kind] : kPlainSources) {
      if (name == known)
        return kind;
    }
    if (name.empty())
      fail(place, fmt::format("a source is missing. Use {}", kKnownSources));
    if (name.starts_with(kHashPrefix)) {
      fail(place, "sha256: occurs twice. Write it once");
    }
    if (looks_like_a_name(name)) {
      fail(place, fmt::format("unknown source \"{0}\". Use header:{0} for a header, /{0} for a "
                              "field of the JSON value, or one of {1}",
                              name, kKnownSources));
    }
    fail(place, fmt::format("unknown source. Use {}", kKnownSources));
  }

  JsonPointer pointer(std::string_view pointer, const Unescaped& written, std::size_t skipped) {
    try {
      return JsonPointer::parse(pointer);
    } catch (const JsonPointerError& error) {
      fail(written.place(skipped + error.byte()), error.what());
    }
  }

  [[noreturn]] void blank(std::size_t place) {
    fail(place,
         "a space at the edge of a source. Remove it, or write \"\\ \" if it is part of the name");
  }

  [[noreturn]] void unclosed() {
    fail(begin_, "the placeholder is not closed. Write } at its end, or {{ for a literal brace");
  }

  [[noreturn]] void fail(std::size_t place, const std::string& problem) {
    throw TemplateError(text_, place, problem);
  }

  std::string_view text_;
  std::size_t begin_;
  std::size_t at_;
};

Resolved value_of(std::string_view text) {
  return {Presence::kValue, text};
}

Resolved value_or_null(std::optional<std::string_view> text) {
  return text ? value_of(*text) : Resolved{Presence::kNull, {}};
}

Resolved digits(std::int64_t number, std::string& scratch) {
  scratch = fmt::format_int(number).c_str();
  return value_of(scratch);
}

Resolved resolve_json(const Source& source, JsonView& json, std::string& scratch) {
  const std::optional<JsonValue> value = json.find(source.pointer);
  if (!value)
    return {};
  if (value->kind() == JsonKind::kNull)
    return {Presence::kNull, {}};
  const std::optional<std::string_view> text = value->text(scratch);
  if (!text) {
    throw RenderError(source.text,
                      fmt::format("{{{}}} is a JSON string with an unpaired surrogate, which "
                                  "UTF-8 does not allow. Fix the producer",
                                  source.text));
  }
  return value_of(*text);
}

Resolved resolve_plain(const Source& source, const Message& message, JsonView& json,
                       std::string& scratch) {
  switch (source.kind) {
    case SourceKind::kHeader: {
      const std::optional<std::string_view> header = message.header(source.header);
      if (!header && !message.has_header(source.header))
        return {};
      return value_or_null(header);
    }
    case SourceKind::kKey:
      return value_or_null(message.key());
    case SourceKind::kValue:
      return message.has_value() ? value_of(message.value()) : Resolved{Presence::kNull, {}};
    case SourceKind::kJson:
      return resolve_json(source, json, scratch);
    case SourceKind::kTopic:
      return value_of(message.topic());
    case SourceKind::kPartition:
      return digits(message.partition(), scratch);
    case SourceKind::kOffset:
      return digits(message.offset(), scratch);
    case SourceKind::kTimestamp:
      return !message.timestamp() ? Resolved{}
                                  : digits(milliseconds_of(message.timestamp()), scratch);
    case SourceKind::kTopicId:
      return message.topic_id().empty() ? Resolved{} : value_of(message.topic_id());
  }
  return {};
}

}  // namespace

Resolved Source::resolve(const Message& message, JsonView& json, std::string& scratch) const {
  const Resolved plain = resolve_plain(*this, message, json, scratch);
  if (!sha256 || plain.presence != Presence::kValue)
    return plain;
  scratch = sha256_hex(plain.text);
  return value_of(scratch);
}

std::pair<Placeholder, std::size_t> Placeholder::parse(std::string_view text, std::size_t begin) {
  Parser parser{text, begin};
  Placeholder placeholder;
  placeholder.sources_ = parser.sources();
  const std::size_t end_of_sources = parser.position();
  placeholder.optional_ = parser.optional_mark_and_end();
  placeholder.text_ = text.substr(begin + 1, end_of_sources - begin - 1);
  placeholder.begin_ = begin;
  return {std::move(placeholder), parser.position()};
}

std::string Placeholder::escaped(std::string_view source) {
  std::string text;
  for (std::size_t i = 0; i < source.size(); ++i) {
    const bool at_edge = i == 0 || i + 1 == source.size();
    if (kEscapable.find(source[i]) != std::string_view::npos && (source[i] != ' ' || at_edge))
      text += '\\';
    text += source[i];
  }
  return text;
}

Resolved Placeholder::resolve(const Message& message, JsonView& json, std::string& scratch) const {
  Resolved result;
  for (const Source& source : sources_) {
    const Resolved resolved = source.resolve(message, json, scratch);
    if (resolved.presence == Presence::kValue)
      return resolved;
    if (resolved.presence == Presence::kNull)
      result = resolved;
  }
  return result;
}

Resolved Placeholder::resolve_nonempty(const Message& message, JsonView& json,
                                       std::string& scratch) const {
  for (const Source& source : sources_) {
    const Resolved resolved = source.resolve(message, json, scratch);
    if (!resolved.text.empty())
      return resolved;
  }
  return {};
}

}  // namespace pawl::message
