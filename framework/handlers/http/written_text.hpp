#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "message/json.hpp"
#include "message/template.hpp"
#include "pawl/message.hpp"
#include "pawl/options.hpp"

namespace pawl::handlers {

/// The position behind the brace that closes the placeholder at text[begin], which is '{'. In a
/// placeholder, a backslash precedes a brace of a name. npos: it is not closed.
[[nodiscard]] std::size_t end_of_placeholder(std::string_view text, std::size_t begin);

/// A text of the configuration with placeholders for what a message has, and ${NAME} and
/// ${file:PATH} for what it must not say itself, which is looked up for each request. Immutable,
/// any thread.
class WrittenText {
 public:
  using Escape = message::Template::Escape;

  /// Throws message::TemplateError.
  explicit WrittenText(const HttpText& text);

  /// Throws message::MessageError for what the message lacks, and NotDone for a file that cannot be
  /// read.
  [[nodiscard]] std::string render(const Message& message, message::JsonView& json,
                                   const Escape& escape) const;

  /// What stands before the first placeholder.
  [[nodiscard]] std::string before_placeholders() const;
  [[nodiscard]] bool has_placeholders() const;
  /// The placeholder that is all there is; else nullptr.
  [[nodiscard]] const message::Placeholder* only_placeholder() const;

 private:
  struct Reference {
    std::string name;  ///< "NAME", "file:PATH"
  };
  using Piece = std::variant<message::Template, Reference>;

  [[nodiscard]] std::string resolve(const Reference& reference) const;

  std::string folder_;
  std::vector<Piece> pieces_;
};

}  // namespace pawl::handlers
