#include "cli/decoded.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "cli/printable.hpp"

namespace pawl::cli {
namespace {

bool is_utf8(std::string_view bytes) {
  try {
    static_cast<void>(Json(std::string(bytes)).dump());
    return true;
  } catch (const nlohmann::json::exception&) {
    return false;
  }
}

/// Text that a person can read: UTF-8 without control characters other than blanks.
bool is_text(std::string_view bytes) {
  const bool steers = std::any_of(bytes.begin(), bytes.end(), [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return (byte < 0x20 && c != '\n' && c != '\r' && c != '\t') || byte == 0x7F;
  });
  return !steers && is_utf8(bytes);
}

std::string hex(std::string_view bytes) {
  std::string text;
  text.reserve(2 * bytes.size());
  for (const char c : bytes)
    text += fmt::format("{:02x}", static_cast<unsigned char>(c));
  return text;
}

}  // namespace

Decoded decode(std::optional<std::string_view> bytes, std::size_t most) {
  if (!bytes)
    return {"null", "", 0, false};
  const auto shown = head(*bytes, most);
  const bool cut = shown.size() < bytes->size();
  if (!is_text(shown)) {
    const auto raw = bytes->substr(0, most);
    return {"hex", hex(raw), bytes->size(), raw.size() < bytes->size()};
  }
  const bool json = !cut && !shown.empty() && Json::accept(shown);
  return {json ? "json" : "text", std::string(shown), bytes->size(), cut};
}

Json to_json(const Decoded& decoded) {
  if (decoded.form == "null")
    return nullptr;
  Json json;
  json["form"] = decoded.form;
  json["bytes"] = decoded.bytes;
  json["cut"] = decoded.cut;
  json["content"] = decoded.text;
  return json;
}

std::string to_text(const Decoded& decoded) {
  if (decoded.form == "null")
    return "null";
  return fmt::format(
      "{}, {} bytes: {}{}", decoded.form, decoded.bytes, printable_lines(decoded.text),
      decoded.cut ? fmt::format("... (cut; --max-bytes {} shows all)", decoded.bytes) : "");
}

}  // namespace pawl::cli
