#pragma once

#include <pawl/options.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "config/document.hpp"
#include "config/node_reader.hpp"

namespace pawl::config {

/// The options of the table are fields of these: the options, and a handler. The handler contains
/// [handler_defaults] until a [[handler]] overrides them.
struct Settings {
  Options options;
  HandlerOptions handler;
};

template <typename T>
using FieldOf = T& (*)(Settings&);

/// One value of an option that has a fixed set of values.
struct Word {
  std::string_view name;
  std::string_view meaning = {};  ///< Markdown, for the documents
};

struct TextField {
  FieldOf<std::string> of;
  /// The limit of a label, which Validation::label checks. 0: validate() has a separate check.
  std::size_t most_bytes = 0;
};

/// A file. A relative path starts at the folder of the configuration file, as in ${file:PATH}.
struct PathField {
  FieldOf<std::string> of;
};

struct TextsField {
  FieldOf<std::vector<std::string>> of;
};

/// A text that is one of these.
struct WordField {
  FieldOf<std::string> of;
  std::span<const Word> words;
};

struct FlagField {
  FieldOf<bool> of;
};

struct DurationField {
  FieldOf<milliseconds> of;
  milliseconds least;
  milliseconds most;
  bool or_zero = false;  ///< zero is allowed too, and disables the feature
};

/// 1 to `most_values` durations, each in this range.
struct DurationsField {
  FieldOf<std::vector<milliseconds>> of;
  milliseconds least;
  milliseconds most;
  std::size_t most_values;
};

struct SizeField {
  FieldOf<std::size_t> of;
  std::size_t least;
  std::size_t most;
};

struct CountField {
  FieldOf<std::uint32_t> of;
  std::uint32_t least;
  std::uint32_t most;
};

/// An enumeration. The words are in the order of its enumerators, which start with zero.
struct ChoiceField {
  std::span<const Word> words;
  std::size_t (*get)(Settings&);
  void (*set)(Settings&, std::size_t);
};

/// A value of another kind. `read` reads the option from its section.
struct OtherField {
  void (*read)(const Reader& section, Findings& findings, Settings& out);
  Node (*value)(Settings&);
};

using OptionField =
    std::variant<TextField, PathField, TextsField, WordField, FlagField, DurationField,
                 DurationsField, SizeField, CountField, ChoiceField, OtherField>;

/// How a [[handler]] overrides an option of a section.
struct HandlersOwn {
  void (*to_handler)(Settings&);    ///< copies the field of the section to the handler
  void (*from_handler)(Settings&);  ///< copies the override of the handler, if any, to the section
};

/// The part of an option's value that `pawl config show` may print.
enum class Shown {
  kAll,
  kConnection,  ///< the result of redact_url()
  kProgram,     ///< the first string; the others are arguments, which may be secret
  kSecret,      ///< nothing
};

/// The description of an option. Its default is that of the field in pawl::Options.
struct OptionDescriptor {
  std::string_view section;  ///< "kafka"; "handler" for options of a [[handler]] only
  std::string_view name;
  OptionField field;
  /// Markdown: the allowed values. Empty: the range or the words of the field.
  std::string_view values = {};
  std::string_view meaning = {};     ///< Markdown, full sentences; links are relative to docs/
  std::string_view example = {};     ///< TOML, for conf/reference.toml; empty: the default
  const HandlersOwn* own = nullptr;  ///< nullptr: a handler cannot override it
  Shown shown = Shown::kAll;
  bool free_table = false;  ///< a section within its section, with any keys

  [[nodiscard]] bool of_handler() const { return section == "handler" || own != nullptr; }
  [[nodiscard]] std::string option() const { return dotted(section, name); }
};

using OptionTable = std::span<const OptionDescriptor>;

inline constexpr std::chrono::hours kLongestRetention{24 * 3650};

/// All options. The reader, the ranges, the known names, the overrides of handlers,
/// conf/reference.toml, docs/reference, and `pawl config show` are derived from it.
[[nodiscard]] OptionTable option_table();

/// Reads an option from its section, or from the table of a handler.
void read_option(const OptionDescriptor& option, const Reader& section, Findings& findings,
                 Settings& out);

/// The value of an option as in a configuration file, without a place.
[[nodiscard]] Node value_of(const OptionDescriptor& option, Settings& settings);

}  // namespace pawl::config
