#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "message/json.hpp"
#include "message/placeholder.hpp"
#include "message/syntax_error.hpp"
#include "pawl/message.hpp"

namespace pawl::message {

/// A key as the template gives it, never empty. make_idempotency_key() makes it storable.
struct KeyText {
  std::string text;
};

/// A message from which no key can be derived (`idempotency.missing_key`).
struct Missing {
  std::string source;      ///< the placeholder that has nothing, without its braces
  std::size_t column = 1;  ///< of that placeholder in the template
  bool of_value = false;   ///< a tombstone has no such thing
};

/// Text with `{...}` placeholders that are filled from a message: idempotency keys and SQL
/// parameters. `{{` and `}}` are literal braces. The placeholders, and what missing, null and empty
/// mean in each use, are described at Placeholder. Parsed once; immutable, any thread.
class Template {
 public:
  /// Throws TemplateError.
  [[nodiscard]] static Template parse(std::string_view text);

  /// The same, and refuses what would make distinct messages look like duplicates or leave the
  /// key's parts ambiguous: nothing but parts that many messages share (topic, topic_id, partition,
  /// timestamp), an offset without topic_id and partition (a recreated topic counts from 0 again),
  /// placeholders that touch. Throws TemplateError.
  [[nodiscard]] static Template parse_key(std::string_view text);

  /// A template that consists of this placeholder alone.
  explicit Template(Placeholder placeholder);

  [[nodiscard]] const std::string& text() const { return text_; }
  /// In their order; they live as long as the template.
  [[nodiscard]] std::vector<const Placeholder*> placeholders() const;
  [[nodiscard]] bool is_single_placeholder() const { return single_; }

  /// The idempotency key. A part that is missing, null or empty identifies nothing: without a
  /// trailing `?` the whole key is Missing; with it, the part is left out, and the key is Missing
  /// only if nothing remains that tells messages apart.
  ///
  /// With more than one placeholder, values are escaped so that distinct values give distinct keys:
  /// a backslash goes before every backslash and before every character with which one of the texts
  /// between placeholders begins. So under "{/a}:{/b}", "x:y" and "z" give `x\:y:z`, "x" and "y:z"
  /// give `x:y\:z`. A template with one placeholder inserts the value as it is.
  ///
  /// Of a template made by parse_key(). Throws MessageError when the value is not JSON.
  [[nodiscard]] std::variant<KeyText, Missing> render_key(const Message& message,
                                                          JsonView& json) const;

  /// How a value is put into a text: appends it to `out`.
  using Escape =
      std::function<void(std::string_view value, const Placeholder& placeholder, std::string& out)>;
  /// Appends the text to `out`, each value by `escape`. What is null counts as missing; with a
  /// trailing `?` nothing stands in its place. Throws JsonError, RenderError.
  void render_text(const Message& message, JsonView& json, const Escape& escape,
                   std::string& out) const;
  /// What stands before the first placeholder.
  [[nodiscard]] std::string_view leading_text() const;

  /// The text of an SQL parameter; nullopt is SQL NULL. Of a template that is a single placeholder.
  /// Throws JsonError; RenderError when nothing is there and the placeholder has no `?`, or when
  /// the text is nothing that a PostgreSQL text value can hold (NUL, not UTF-8).
  [[nodiscard]] std::optional<std::string> render_parameter(const Message& message,
                                                            JsonView& json) const;
  /// The same as a view into the message, its JSON document or `scratch`.
  [[nodiscard]] std::optional<std::string_view> render_parameter(const Message& message,
                                                                 JsonView& json,
                                                                 std::string& scratch) const;
  /// The bytes of an SQL parameter, whatever they are; else as render_parameter().
  [[nodiscard]] std::optional<std::string_view> render_bytes(const Message& message, JsonView& json,
                                                             std::string& scratch) const;

 private:
  using Piece = std::variant<std::string, Placeholder>;

  Template() = default;
  void check_identifies(std::string_view text) const;
  void find_separators(std::string_view text);
  [[nodiscard]] Missing missing(const Placeholder& placeholder) const;
  void append_escaped(std::string_view value, std::string& key) const;

  std::string text_;
  std::vector<Piece> pieces_;
  bool single_ = false;
  std::size_t placeholders_ = 0;
  std::string separators_;  // what is escaped in keys beside the backslash: literals' first bytes
};

}  // namespace pawl::message
