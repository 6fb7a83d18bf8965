#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "message/json_pointer.hpp"
#include "message/message_error.hpp"
#include "pawl/message.hpp"

namespace pawl::message {

enum class JsonKind { kNull, kFalse, kTrue, kNumber, kString, kArray, kObject };

/// One value inside a parsed document. A view, valid until its JsonReader reads the next document.
class JsonValue {
 public:
  /// `raw` lies within a document that a JsonReader has accepted.
  JsonValue(JsonKind kind, std::string_view raw) : kind_(kind), raw_(raw) {}

  [[nodiscard]] JsonKind kind() const { return kind_; }

  /// The value as it stands in the document, byte for byte: strings with quotes and escapes, arrays
  /// and objects with the producer's white space.
  [[nodiscard]] std::string_view raw() const { return raw_; }

  /// The value as text: a string's characters, everything else as raw(). So a number keeps its
  /// digits exactly; it never goes through a double. The view points into the document, or into
  /// `scratch` where escapes had to be resolved. The text may contain NUL (\u0000).
  /// nullopt: the string has an unpaired surrogate (as in "\ud800"), which no UTF-8 text can hold.
  [[nodiscard]] std::optional<std::string_view> text(std::string& scratch) const;

 private:
  JsonKind kind_;
  std::string_view raw_;
};

/// A member of a parsed document that is an object; valid as long as its value.
struct JsonMember {
  std::string_view written;         ///< its name as it stands in the document, without the quotes
  std::optional<std::string> name;  ///< nullopt: it has an unpaired surrogate, so nothing finds it
  JsonValue value;
};

/// The text behind a byte order mark (U+FEFF), with which some producers begin their JSON (RFC
/// 8259, 8.1).
[[nodiscard]] std::string_view without_byte_order_mark(std::string_view text);

/// Parses JSON documents one after the other, and keeps its buffers between them. Owned by one
/// worker; not thread-safe.
///
/// A document is checked as a whole before anything is taken from it (RFC 8259: structure, numbers,
/// escapes, UTF-8, nothing after its end), so an error behind the field that one asks for is found
/// too. Beyond the RFC:
///  * a leading byte order mark is ignored;
///  * arrays and objects nested deeper than kMaxDepth are refused;
///  * of members with the same name the last counts, as in PostgreSQL's jsonb;
///  * numbers of any size and precision are accepted, and unpaired surrogates are an error only
///    where their string is asked for.
class JsonReader {
 public:
  static constexpr std::size_t kMaxDepth = 1024;

  JsonReader();
  ~JsonReader();
  JsonReader(JsonReader&&) noexcept;
  JsonReader& operator=(JsonReader&&) noexcept;

  /// Takes a copy of `text` and checks it. Throws JsonError; find() must not be called then.
  void read(std::string_view text);

  /// The value at `pointer` in the document read last; nullopt when there is none.
  [[nodiscard]] std::optional<JsonValue> find(const JsonPointer& pointer) const;

  /// What find() can find one level below the document read last, in the order of the names' first
  /// places. Empty where the document is no object.
  [[nodiscard]] std::vector<JsonMember> members() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// One message's value as JSON, parsed when it is first asked for and at most once. It lives as
/// long as the message is in hand; another JsonView over the same reader ends its use.
class JsonView {
 public:
  /// `reader` and the message's value outlive the view.
  JsonView(JsonReader& reader, const Message& message)
      : reader_(&reader),
        text_(message.has_value() ? std::optional{message.value()} : std::nullopt) {}

  /// The value at `pointer`. nullopt when the document has none there, and always for a tombstone:
  /// it has no document. Throws JsonError when the message's value is not JSON; an empty value is
  /// not.
  [[nodiscard]] std::optional<JsonValue> find(const JsonPointer& pointer);

 private:
  JsonReader* reader_;
  std::optional<std::string_view> text_;
  bool read_ = false;
  std::optional<JsonError> error_;
};

}  // namespace pawl::message
