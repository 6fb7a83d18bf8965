#include "console/decoded.hpp"

#include <fmt/format.h>
#include <simdjson.h>

#include <algorithm>

#include "console/printable.hpp"
#include "message/base64.hpp"
#include "message/hexadecimal.hpp"

namespace pawl::cli {
namespace {

bool is_utf8(std::string_view bytes) {
  return simdjson::validate_utf8(bytes.data(), bytes.size());
}

/// Text that a person can read: UTF-8 without control characters other than blanks.
bool can_be_read(std::string_view bytes) {
  const bool steers = std::any_of(bytes.begin(), bytes.end(), [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return (byte < 0x20 && c != '\n' && c != '\r' && c != '\t') || byte == 0x7F;
  });
  return !steers && is_utf8(bytes);
}

}  // namespace

Decoded decode(std::optional<std::string_view> bytes, std::size_t most) {
  if (!bytes)
    return {"null", "", 0, false};
  const auto shown = head(*bytes, most);
  const bool cut = shown.size() < bytes->size();
  if (!can_be_read(shown)) {
    const auto raw = bytes->substr(0, most);
    return {"hex", message::hexadecimal(raw), bytes->size(), raw.size() < bytes->size()};
  }
  const bool json = !cut && !shown.empty() && Json::accept(shown);
  return {json ? "json" : "text", std::string(shown), bytes->size(), cut};
}

std::string size_text(const Decoded& decoded) {
  return fmt::format("{} {}", decoded.bytes, decoded.bytes == 1 ? "byte" : "bytes");
}

std::string to_text(const Decoded& decoded) {
  if (decoded.form == "null")
    return "null";
  return fmt::format("{}, {}: {}{}", decoded.form, size_text(decoded),
                     printable_lines(decoded.text),
                     !decoded.cut ? ""
                     : decoded.bytes <= kMostShown
                         ? fmt::format("... (cut; --max-bytes {} shows all)", decoded.bytes)
                         : "... (cut)");
}

std::string indented_json(std::string_view json) {
  constexpr std::size_t kDeepest = 32;
  constexpr std::size_t kIndent = 2;
  std::string result;
  std::size_t depth = 0;
  bool in_string = false;
  const auto new_line = [&] { result += '\n' + std::string(depth * kIndent, ' '); };
  for (std::size_t i = 0; i < json.size(); ++i) {
    const char c = json[i];
    if (in_string) {
      result += c;
      if (c == '\\')
        result += json[++i];
      in_string = c != '"';
      continue;
    }
    switch (c) {
      case ' ':
      case '\t':
      case '\n':
      case '\r':
        break;
      case '{':
      case '[': {
        result += c;
        const auto next = json.find_first_not_of(" \t\n\r", i + 1);
        if (json[next] == '}' || json[next] == ']') {
          result += json[next];
          i = next;
          break;
        }
        if (++depth > kDeepest)
          return std::string(json);
        new_line();
        break;
      }
      case '}':
      case ']':
        --depth;
        new_line();
        result += c;
        break;
      case ',':
        result += c;
        new_line();
        break;
      case ':':
        result += ": ";
        break;
      default:
        in_string = c == '"';
        result += c;
    }
  }
  return result;
}

std::string parts_text(const Message& message, std::size_t most) {
  const auto shown = [&](std::optional<std::string_view> bytes) { return decode(bytes, most); };
  std::string text =
      message.headers_unreadable() ? "headers: unknown, Kafka's client cannot read them\n" : "";
  for (const auto& header : message.headers()) {
    text += fmt::format("header {}: {}\n", printable(shown(header.name).text),
                        to_text(shown(header.value)));
  }
  const auto value = message.has_value() ? std::optional(message.value()) : std::nullopt;
  return text +
         fmt::format("key: {}\nvalue: {}\n", to_text(shown(message.key())), to_text(shown(value)));
}

Json readable(std::optional<std::string_view> bytes, std::size_t most) {
  if (!bytes)
    return nullptr;
  const auto text = head(*bytes, most);
  const bool whole = bytes->size() <= most;
  const bool is_text = is_utf8(text);
  if (is_text && whole)
    return Json(text);
  Json json;
  if (is_text) {
    json["text"] = text;
  } else {
    json["base64"] = message::base64(bytes->substr(0, most));
  }
  if (!whole)
    json["cut"] = true;
  return json;
}

}  // namespace pawl::cli
