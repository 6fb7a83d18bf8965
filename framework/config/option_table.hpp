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

/// What the options of the table are fields of: the options, and a handler, which is what
/// [handler_defaults] says until a [[handler]] says otherwise.
struct Settings {
  Options options;
  HandlerOptions handler;
};

template <typename T>
using FieldOf = T& (*)(Settings&);

/// What an option that has a few values calls one of them.
struct Word {
  std::string_view name;
  std::string_view meaning = {};  ///< Markdown, for the documents
};

struct TextField {
  FieldOf<std::string> of;
  /// Of a label, which is checked as one (Validation::label); 0: validate() has a check of its own.
  std::size_t most_bytes = 0;
};

/// A file; a relative path begins at the folder of the config file, as in ${file:PATH}.
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
  bool or_zero = false;  ///< zero is allowed as well, and turns something off
};

/// Several, each in this range; `most_values`: how many.
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

/// An enumeration; the words stand in the order of its enumerators, which begin with zero.
struct ChoiceField {
  std::span<const Word> words;
  std::size_t (*get)(Settings&);
  void (*set)(Settings&, std::size_t);
};

/// What is no plain value. `read` takes the option out of its section.
struct OtherField {
  void (*read)(const Reader& section, Findings& findings, Settings& out);
  Node (*value)(Settings&);
};

using OptionField =
    std::variant<TextField, PathField, TextsField, WordField, FlagField, DurationField,
                 DurationsField, SizeField, CountField, ChoiceField, OtherField>;

/// How a [[handler]] has an option of a section for itself.
struct HandlersOwn {
  void (*to_handler)(Settings&);    ///< the section's field is now also the handler's own
  void (*from_handler)(Settings&);  ///< what the handler has of its own is now the section's field
};

/// What `pawl config show` may print of an option's value.
enum class Shown {
  kAll,
  kConnection,  ///< redact_url() says
  kProgram,     ///< the first text; the others are arguments, which may be secret
  kSecret,      ///< nothing
};

/// Everything that is known of an option but its default, which is that of the field in
/// pawl::Options.
struct OptionDescriptor {
  std::string_view section;  ///< "kafka"; "handler" for what only a [[handler]] has
  std::string_view name;
  OptionField field;
  /// Markdown: what it may hold. Empty: the field's range or words say it.
  std::string_view values = {};
  std::string_view meaning = {};     ///< Markdown, whole sentences
  std::string_view example = {};     ///< TOML, for conf/reference.toml; empty: the default
  const HandlersOwn* own = nullptr;  ///< nullptr: no handler may say otherwise
  Shown shown = Shown::kAll;
  bool free_table = false;  ///< a section of its own within its section, with any keys

  [[nodiscard]] bool of_handler() const { return section == "handler" || own != nullptr; }
  [[nodiscard]] std::string option() const { return dotted(section, name); }
};

using OptionTable = std::span<const OptionDescriptor>;

inline constexpr std::chrono::hours kLongestRetention{24 * 3650};

/// The one place of every option: the reader, the ranges, the known names, what a handler may say,
/// conf/reference.toml, docs/configuration.md and `pawl config show` all go by it.
[[nodiscard]] OptionTable option_table();

/// Reads an option out of its section, or a handler's table.
void read_option(const OptionDescriptor& option, const Reader& section, Findings& findings,
                 Settings& out);

/// Its value as a document would have it, without a place.
[[nodiscard]] Node value_of(const OptionDescriptor& option, Settings& settings);

}  // namespace pawl::config
