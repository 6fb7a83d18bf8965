#include "config/values.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <string_view>
#include <utility>

#include "message/rfc3339.hpp"

namespace pawl::config {

namespace {

/// A basic string (TOML 1.0, "String").
std::string string_text(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (c == '\n') {
      out += "\\n";
    } else if (c == '\t') {
      out += "\\t";
    } else if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) {
      out += fmt::format("\\u{:04x}", static_cast<unsigned>(static_cast<unsigned char>(c)));
    } else {
      out += c;
    }
  }
  return out + '"';
}

}  // namespace

Node text_value(std::string text) {
  Node node;
  node.kind = Node::Kind::kString;
  node.value = node.written = std::move(text);
  return node;
}

Node texts_value(const std::vector<std::string>& texts) {
  Node node;
  node.kind = Node::Kind::kArray;
  for (const std::string& text : texts)
    node.items.push_back(text_value(text));
  return node;
}

Node integer_value(std::int64_t number) {
  Node node;
  node.kind = Node::Kind::kInteger;
  node.integer = number;
  node.written = std::to_string(number);
  return node;
}

Node flag_value(bool flag) {
  Node node;
  node.kind = Node::Kind::kBoolean;
  node.boolean = flag;
  node.written = flag ? "true" : "false";
  return node;
}

Node time_value(std::int64_t milliseconds) {
  Node node;
  node.kind = Node::Kind::kTime;
  node.time_ms = milliseconds;
  return node;
}

std::string toml_key(const std::string& name) {
  const bool bare = !name.empty() && std::all_of(name.begin(), name.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '-';
  });
  return bare ? name : string_text(name);
}

std::string toml_text(const Node& value) {
  switch (value.kind) {
    case Node::Kind::kString:
      return string_text(value.value);
    case Node::Kind::kTime:
      return time_text(value.time_ms);
    case Node::Kind::kArray: {
      std::vector<std::string> items;
      for (const Node& item : value.items)
        items.push_back(toml_text(item));
      return fmt::format("[{}]", fmt::join(items, ", "));
    }
    case Node::Kind::kTable: {
      std::vector<std::string> members;
      for (const auto& [name, member] : value.members)
        members.push_back(fmt::format("{} = {}", toml_key(name), toml_text(member)));
      return members.empty() ? "{}" : fmt::format("{{ {} }}", fmt::join(members, ", "));
    }
    case Node::Kind::kInteger:
    case Node::Kind::kFloat:
    case Node::Kind::kBoolean:
    case Node::Kind::kLocalTime:
      return value.written;
  }
  return "";
}

std::string time_text(std::int64_t milliseconds) {
  const Timestamp time{std::chrono::milliseconds{milliseconds}};
  return milliseconds % 1000 == 0 ? message::rfc3339(time) : message::rfc3339_milliseconds(time);
}

}  // namespace pawl::config
