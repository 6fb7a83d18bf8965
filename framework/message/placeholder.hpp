#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "message/json.hpp"
#include "message/json_pointer.hpp"
#include "message/syntax_error.hpp"
#include "pawl/message.hpp"

namespace pawl::message {

enum class SourceKind {
  kHeader,     ///< header:NAME, the last header of that name
  kKey,        ///< key, the record key's bytes
  kValue,      ///< value, the record value's bytes
  kJson,       ///< /json/pointer into the value (RFC 6901)
  kTopic,      ///< topic
  kPartition,  ///< partition
  kOffset,     ///< offset
  kTimestamp,  ///< timestamp, milliseconds since the epoch
  kTopicId,    ///< topic_id (KIP-516), Kafka's base64 form
};

/// Whether a source has something to give.
enum class Presence {
  kMissing,  ///< nothing is there
  kNull,     ///< something is there, and it is null
  kValue,
};

/// What a source gives for one message. `text` is set for kValue only; it points into the message,
/// the JSON document or the scratch string.
struct Resolved {
  Presence presence = Presence::kMissing;
  std::string_view text;
};

/// One alternative of a placeholder.
struct Source {
  SourceKind kind = SourceKind::kValue;
  /// Give the SHA-256 of the text in hexadecimal instead of the text (sha256:SOURCE).
  bool sha256 = false;
  std::string header;   ///< kHeader
  JsonPointer pointer;  ///< kJson
  std::string text;     ///< as the configuration has it

  /// Throws JsonError, or RenderError for a JSON string that is no text (an unpaired surrogate).
  [[nodiscard]] Resolved resolve(const Message& message, JsonView& json,
                                 std::string& scratch) const;
};

/// `{...}`: one or more sources, of which the first that has a value counts. Immutable, any thread.
///
///     placeholder = "{" source *( "|" source ) [ "?" ] "}"
///     source      = [ "sha256:" ] ( "header:" NAME | "key" | "value" | POINTER | "topic" |
///                   "partition" | "offset" | "timestamp" | "topic_id" )
///
/// NAME and POINTER may hold any character; `\`, `|`, `?`, `{`, `}` and a blank at either end are
/// written with a backslash before them. A trailing `?` says that nothing may be there.
///
/// What a source gives:
///
///     | source         | missing                       | null          | value
///     | header:NAME    | no such header                | null value    | its bytes, also none
///     | key            |                               | null key      | its bytes, also none
///     | value          |                               | tombstone     | its bytes, also none
///     | /pointer       | nothing there, or a tombstone | JSON null     | see below
///     | timestamp      | the record has none           |               | digits
///     | topic_id       | the broker has none           |               | base64
///     | topic, partition, offset |                     |               | text, digits
///     | sha256:SOURCE  | SOURCE is                     | SOURCE is     | 64 hex digits
///
/// JSON strings give their characters; numbers their digits exactly as they stand (never through a
/// double); true and false their name; arrays and objects their JSON text as it stands, white space
/// included. "" (empty) is a value.
///
/// Of alternatives the first with a value counts, in an idempotency key the first that is not
/// empty; if none has one, the placeholder is null when one of them is null, else missing. What
/// missing and null then mean depends on the use:
///
///     | use                         | missing            | null    | empty value
///     | idempotency key             | no key (*)         | no key (*) | no key (*)
///     | SQL parameter               | error (*)          | NULL    | ''
///     | condition                   | equals nothing     | equals nothing | equals ""
///     (*) with a trailing ?: left out of the key; SQL NULL
class Placeholder {
 public:
  /// Parses the placeholder that begins at text[begin], which is '{'; returns it and the position
  /// behind its '}'. Throws TemplateError with positions in `text`.
  [[nodiscard]] static std::pair<Placeholder, std::size_t> parse(std::string_view text,
                                                                 std::size_t begin);

  /// A source such as "header:NAME" as it stands in a placeholder, with its backslashes.
  [[nodiscard]] static std::string escaped(std::string_view source);

  [[nodiscard]] const std::vector<Source>& sources() const { return sources_; }
  [[nodiscard]] bool is_optional() const { return optional_; }
  /// Without the braces and the trailing ?, as the configuration has it.
  [[nodiscard]] const std::string& text() const { return text_; }
  /// Position of the opening brace in the text it was parsed from.
  [[nodiscard]] std::size_t begin() const { return begin_; }

  /// The first source's value. `scratch` holds what must be computed, and outlives the result.
  /// Throws what Source::resolve throws.
  [[nodiscard]] Resolved resolve(const Message& message, JsonView& json,
                                 std::string& scratch) const;
  /// The first source's value that is not empty; missing if there is none. Otherwise as resolve().
  [[nodiscard]] Resolved resolve_nonempty(const Message& message, JsonView& json,
                                          std::string& scratch) const;

 private:
  std::vector<Source> sources_;
  bool optional_ = false;
  std::string text_;
  std::size_t begin_ = 0;
};

}  // namespace pawl::message
