#include "message/template.hpp"

#include <fmt/format.h>
#include <simdjson.h>

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "message/message_error.hpp"

namespace pawl::message {
namespace {

constexpr char kEscape = '\\';

// Whether distinct messages of one topic differ in it whichever of its sources it takes.
bool tells_messages_apart(const Placeholder& placeholder) {
  const auto shared = [](const Source& source) {
    return source.kind == SourceKind::kTopic || source.kind == SourceKind::kTopicId ||
           source.kind == SourceKind::kPartition || source.kind == SourceKind::kTimestamp;
  };
  return std::none_of(placeholder.sources().begin(), placeholder.sources().end(), shared);
}

/// Of a tombstone nothing is there.
bool reads_value(const Placeholder& placeholder) {
  return std::ranges::any_of(placeholder.sources(), [](const Source& source) {
    return source.kind == SourceKind::kJson || source.kind == SourceKind::kValue;
  });
}

/// `absent`: what the use makes of nothing where that is allowed.
[[noreturn]] void throw_missing(const Placeholder& placeholder, const Message& message,
                                std::string_view absent) {
  const bool tombstone = !message.has_value() && reads_value(placeholder);
  throw RenderError(
      placeholder.text(),
      fmt::format("{1} {{{0}}}. {3}, or write {{{0}?}} if the value may be absent ({2})",
                  placeholder.text(),
                  tombstone ? "the message is a tombstone (its value is null), so it has no"
                            : "the message has no",
                  absent,
                  tombstone ? "Add a handler with when = \"!has({value})\" before this one"
                            : "Fix the producer"));
}

[[noreturn]] void throw_not_text(const Placeholder& placeholder, std::string_view why) {
  throw RenderError(placeholder.text(),
                    fmt::format("{{{}}} {}. Fix the producer, or handle the message in code",
                                placeholder.text(), why));
}

}  // namespace

Template::Template(Placeholder placeholder)
    : text_("{" + placeholder.text() + (placeholder.is_optional() ? "?}" : "}")),
      single_(true),
      placeholders_(1) {
  pieces_.emplace_back(std::move(placeholder));
}

Template Template::parse(std::string_view text) {
  Template result;
  result.text_ = text;
  std::string literal;
  const auto finish_literal = [&] {
    if (!literal.empty())
      result.pieces_.emplace_back(std::exchange(literal, {}));
  };
  for (std::size_t at = 0; at < text.size();) {
    const char c = text[at];
    const bool doubled = at + 1 < text.size() && text[at + 1] == c;
    if ((c == '{' || c == '}') && doubled) {
      literal += c;
      at += 2;
    } else if (c == '}') {
      throw TemplateError(text, at, "a } without its {. Write }} for a literal brace");
    } else if (c == '{') {
      finish_literal();
      auto [placeholder, end] = Placeholder::parse(text, at);
      result.pieces_.emplace_back(std::move(placeholder));
      ++result.placeholders_;
      at = end;
    } else {
      literal += c;
      ++at;
    }
  }
  finish_literal();
  result.single_ = result.pieces_.size() == 1 && result.placeholders_ == 1;
  return result;
}

Template Template::parse_key(std::string_view text) {
  Template result = parse(text);
  result.check_identifies(text);
  result.find_separators(text);
  return result;
}

void Template::check_identifies(std::string_view text) const {
  bool tells_apart = false;
  bool has_offset = false;
  bool has_partition = false;
  bool has_topic_id = false;
  for (const Piece& piece : pieces_) {
    const auto* placeholder = std::get_if<Placeholder>(&piece);
    if (placeholder == nullptr)
      continue;
    tells_apart = tells_apart || tells_messages_apart(*placeholder);
    for (const Source& source : placeholder->sources()) {
      has_offset = has_offset || source.kind == SourceKind::kOffset;
      has_partition = has_partition || source.kind == SourceKind::kPartition;
      has_topic_id = has_topic_id || source.kind == SourceKind::kTopicId;
    }
  }
  if (!tells_apart) {
    throw TemplateError(
        text, 0,
        "many messages would have the same key, and all except the first would be duplicates. Use "
        "a value that identifies an event, such as {header:event-id} or {/id}");
  }
  if (has_offset && !(has_partition && has_topic_id)) {
    throw TemplateError(text, 0,
                        "an offset identifies a message only within its partition, and only until "
                        "the topic is recreated. Write {topic_id}:{partition}:{offset}");
  }
}

void Template::find_separators(std::string_view text) {
  const Placeholder* last = nullptr;
  const std::string* between = nullptr;
  for (const Piece& piece : pieces_) {
    if (const auto* literal = std::get_if<std::string>(&piece)) {
      between = literal;
      continue;
    }
    const auto& placeholder = std::get<Placeholder>(piece);
    if (last != nullptr && (between == nullptr || between->front() == kEscape)) {
      throw TemplateError(text, placeholder.begin(),
                          "the end of the value before this placeholder is ambiguous. Put a text "
                          "such as : between them, not starting with a backslash");
    }
    if (last != nullptr)
      separators_ += between->front();
    last = &placeholder;
    between = nullptr;
  }
}

void Template::append_escaped(std::string_view value, std::string& key) const {
  if (placeholders_ < 2) {
    key += value;
    return;
  }
  for (const char c : value) {
    if (c == kEscape || separators_.find(c) != std::string::npos)
      key += kEscape;
    key += c;
  }
}

Missing Template::missing(const Placeholder& placeholder) const {
  return {placeholder.text(), position_of(text_, placeholder.begin()).column,
          reads_value(placeholder)};
}

std::vector<const Placeholder*> Template::placeholders() const {
  std::vector<const Placeholder*> all;
  for (const auto& piece : pieces_) {
    if (const auto* placeholder = std::get_if<Placeholder>(&piece))
      all.push_back(placeholder);
  }
  return all;
}

std::variant<KeyText, Missing> Template::render_key(const Message& message, JsonView& json) const {
  std::string key;
  std::string scratch;
  const Placeholder* left_out = nullptr;
  bool identifies = false;
  for (const Piece& piece : pieces_) {
    if (const auto* literal = std::get_if<std::string>(&piece)) {
      key += *literal;
      continue;
    }
    const auto& placeholder = std::get<Placeholder>(piece);
    const Resolved resolved = placeholder.resolve_nonempty(message, json, scratch);
    if (!resolved.text.empty()) {
      append_escaped(resolved.text, key);
      identifies = identifies || tells_messages_apart(placeholder);
    } else if (placeholder.is_optional()) {
      left_out = &placeholder;
    } else {
      return missing(placeholder);
    }
  }
  if (identifies)
    return KeyText{std::move(key)};
  if (left_out == nullptr)
    return Missing{text_, 1, false};
  return missing(*left_out);
}

void Template::render_text(const Message& message, JsonView& json, const Escape& escape,
                           std::string& out) const {
  std::string scratch;
  for (const Piece& piece : pieces_) {
    if (const auto* literal = std::get_if<std::string>(&piece)) {
      out += *literal;
      continue;
    }
    const auto& placeholder = std::get<Placeholder>(piece);
    const Resolved resolved = placeholder.resolve(message, json, scratch);
    if (resolved.presence == Presence::kValue) {
      escape(resolved.text, placeholder, out);
    } else if (!placeholder.is_optional()) {
      throw_missing(placeholder, message, "empty");
    }
  }
}

std::string_view Template::leading_text() const {
  if (pieces_.empty())
    return {};
  const auto* literal = std::get_if<std::string>(&pieces_.front());
  return literal == nullptr ? std::string_view{} : *literal;
}

std::optional<std::string> Template::render_parameter(const Message& message,
                                                      JsonView& json) const {
  std::string scratch;
  const auto text = render_parameter(message, json, scratch);
  if (text && text->data() == scratch.data())
    return scratch;
  return text ? std::optional<std::string>(*text) : std::nullopt;
}

std::optional<std::string_view> Template::render_parameter(const Message& message, JsonView& json,
                                                           std::string& scratch) const {
  const auto text = render_bytes(message, json, scratch);
  if (!text)
    return std::nullopt;
  const auto& placeholder = std::get<Placeholder>(pieces_.front());
  if (text->find('\0') != std::string_view::npos) {
    throw_not_text(placeholder, "contains NUL, which a PostgreSQL text cannot store");
  }
  if (!simdjson::validate_utf8(text->data(), text->size())) {
    throw_not_text(placeholder, "is not valid UTF-8, which a PostgreSQL text cannot store");
  }
  return text;
}

std::optional<std::string_view> Template::render_bytes(const Message& message, JsonView& json,
                                                       std::string& scratch) const {
  if (!single_)
    throw std::logic_error("an SQL parameter is rendered from a single placeholder");
  const auto& placeholder = std::get<Placeholder>(pieces_.front());
  const Resolved resolved = placeholder.resolve(message, json, scratch);
  if (resolved.presence == Presence::kMissing && !placeholder.is_optional())
    throw_missing(placeholder, message, "SQL NULL");
  if (resolved.presence != Presence::kValue)
    return std::nullopt;
  return resolved.text;
}

}  // namespace pawl::message
