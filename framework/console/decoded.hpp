#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "console/json.hpp"
#include "pawl/message.hpp"

namespace pawl::cli {

/// Limit of `--max-bytes`: bytes that a command shows of one part of a message.
inline constexpr std::size_t kMostShown = std::size_t{100} << 20U;

/// Bytes of a message for a person's eyes: JSON and text as they are, all else in hexadecimal.
struct Decoded {
  std::string form;       ///< "json", "text", "hex"; "null" for Kafka's null
  std::string text;       ///< at most as much of it as asked for
  std::size_t bytes = 0;  ///< how many there are in all
  bool cut = false;       ///< `text` is not all of them
};

/// Shows at most `most` of the bytes. What is cut is not checked for being JSON.
[[nodiscard]] Decoded decode(std::optional<std::string_view> bytes, std::size_t most);

/// "12 bytes"
[[nodiscard]] std::string size_text(const Decoded& decoded);
/// "text, 12 bytes: hello", without anything that steers a terminal.
[[nodiscard]] std::string to_text(const Decoded& decoded);

/// Valid JSON with a line per member; numbers and strings stay as they are. What is nested deeper
/// than people read stays one line.
[[nodiscard]] std::string indented_json(std::string_view json);

/// Bytes for machines: a string that is the text, {"base64": ...} for what is no UTF-8, null for
/// Kafka's null. What is cut says so: {"text": ..., "cut": true}, {"base64": ..., "cut": true}.
[[nodiscard]] Json readable(std::optional<std::string_view> bytes,
                            std::size_t most = std::string_view::npos);

/// Headers, key and value of a message, a line each, with at most `most` bytes of each.
[[nodiscard]] std::string parts_text(const Message& message, std::size_t most);

}  // namespace pawl::cli
