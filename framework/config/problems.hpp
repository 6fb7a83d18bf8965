#pragma once

#include <cstddef>
#include <optional>
#include <pawl/errors.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace pawl::config {

/// A place within a value; both count from 1, columns count characters.
struct TextPlace {
  std::size_t line = 1;
  std::size_t column = 1;
};

/// One thing that is wrong with the options. A value appears only in `shown`, so that the loader
/// can replace it by the text of the user (`${PASSWORD}`), which is not secret.
struct Problem {
  std::string option;  ///< "kafka.group", "handler[0].topics[1]"; empty: the file as a whole
  std::string shown;   ///< the value, ready to print (quoted, redacted); empty: not shown
  std::string what;    ///< what is wrong: a phrase without a period
  std::string fix;     ///< what to do: a sentence without its period; empty: `what` contains it
  std::string also;    ///< another option that takes part, whose place counts if this one has none
  std::size_t line = 0;  ///< of the file, for sorting; 0: not in the file
  std::string where;     ///< "conf/payments.toml:12", "--set kafka.group"; empty: set in code
  /// Where in the value a template, condition or statement cannot be understood.
  std::optional<TextPlace> place;

  /// One line: "conf/payments.toml:12: consumer.workers = 0: out of range. Use 1 to 256", or
  /// "--set consumer.workers=0: out of range. Use 1 to 256".
  [[nodiscard]] std::string text() const;
};

/// The exception with one line per problem.
[[nodiscard]] ConfigErrors errors_of(const std::vector<Problem>& problems);

/// "section.key"; the key alone where there is no section.
[[nodiscard]] std::string dotted(std::string_view section, std::string_view key);

/// The text in double quotes, control characters escaped, cut after 80 bytes.
[[nodiscard]] std::string in_quotes(std::string_view text);

/// The candidate that `name` was probably meant to be; nullopt if none is near.
[[nodiscard]] std::optional<std::string> nearest(std::string_view name,
                                                 const std::vector<std::string>& candidates);
/// The same, at an edit distance of at most `most`.
[[nodiscard]] std::optional<std::string> nearest(std::string_view name,
                                                 const std::vector<std::string>& candidates,
                                                 std::size_t most);

/// `"a", "b", or "c"`; `"a" or "b"`.
[[nodiscard]] std::string any_of(const std::vector<std::string_view>& names);

}  // namespace pawl::config
