#include "config/documents.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <sstream>
#include <stdexcept>
#include <utility>
#include <vector>

#include "config/units.hpp"
#include "config/values.hpp"

namespace pawl::config {

namespace {

constexpr std::size_t kColumns = 100;
constexpr const char* kHandler = "handler";

constexpr const char* kHead =
    R"(# Every option of pawl with its default: to load this file changes nothing. Over the defaults goes
# your file, then each --set section.key=value. So a config file of yours needs only what differs:
# bootstrap_servers, group, a key and at least one [[handler]].
#
# Made by scripts/documents from framework/config/option_table.cpp; change that instead.
#
# Durations are strings with a unit: "500ms", "30s", "5m", "2h", "7d".
# Sizes are strings with a unit: "512B", "64KiB", "1MiB", "1GiB".
# In every string ${NAME} stands for an environment variable and ${file:PATH} for the content of a
# file (without the line break at its end; a relative PATH starts at the config file's folder).
# $${ stands for a plain ${.
)";

constexpr const char* kProperties =
    R"(# Any property of librdkafka's CONFIGURATION.md as it stands there, for example
#   "security.protocol" = "sasl_ssl"
#   "sasl.password" = "${file:/run/secrets/kafka}"
# Properties that would break the promise are refused, with the option to use instead.
)";

constexpr const char* kHandlers =
    R"(# Handlers say what a message does. Each is a table of the array [[handler]], tried from the top; at
# least one is required. All that a handler may hold (a handler has one of sql, function and http, or
# else the name under which a C++ program has registered its code):
#
)";

constexpr const char* kSecondHandler = R"(#
# [[handler]]
# name = "refund"
# topics = ["payments"]
# when = '{header:type} == "refund"'
)";

constexpr const char* kThirdHandler = R"(#
# [[handler]]
# name = "charge"
# topics = ["orders"]
)";

/// What a section says of all its options.
constexpr std::array<std::pair<std::string_view, std::string_view>, 5> kRemarks{
    {{"redis", "Only with calls.lease_store = \"redis\" (docs/effects.md)."},
     {"batch",
      "For handlers that take batches (docs/batches.md): `batch = true`, or code that was "
      "registered "
      "by `batch_handler`."},
     {"alerts",
      "Sent for a halt, a dead letter, a server or a remote service that is unreachable, and other "
      "states that need a person. docs/observe.md lists them with their fields."},
     {"monitoring",
      "Metrics for Prometheus and probes over HTTP, of `run` and `relay` (docs/observe.md), and "
      "the "
      "dashboard (docs/dashboard.md)."},
     {"handler_defaults", "What every [[handler]] has that does not say otherwise."}}};

std::string default_of(const OptionDescriptor& option) {
  Settings settings;
  return toml_text(value_of(option, settings));
}

/// The words of an option that has some.
std::span<const Word> words_of(const OptionDescriptor& option) {
  if (const auto* const choice = std::get_if<ChoiceField>(&option.field))
    return choice->words;
  if (const auto* const word = std::get_if<WordField>(&option.field))
    return word->words;
  return {};
}

bool explains_words(const OptionDescriptor& option) {
  const auto words = words_of(option);
  return !words.empty() && !words.front().meaning.empty();
}

/// Of numbers: the least, the most, and what is allowed beside; texts as TOML has them.
struct Range {
  std::string least;
  std::string most;
  std::string beside = {};
};

std::optional<Range> range_of(const OptionDescriptor& option) {
  const auto quoted = [](const std::string& text) { return fmt::format("\"{}\"", text); };
  if (const auto* const duration = std::get_if<DurationField>(&option.field)) {
    return Range{quoted(format_duration(duration->least)), quoted(format_duration(duration->most)),
                 duration->or_zero ? "\"0s\"" : ""};
  }
  if (const auto* const size = std::get_if<SizeField>(&option.field))
    return Range{quoted(format_size(size->least)), quoted(format_size(size->most))};
  if (const auto* const count = std::get_if<CountField>(&option.field))
    return Range{std::to_string(count->least), std::to_string(count->most)};
  return std::nullopt;
}

// ---- docs/configuration.md ----------------------------------------------------------------------

std::string in_backticks(std::string_view toml) {
  return fmt::format("`{}`", toml);
}

std::string values_in_markdown(const OptionDescriptor& option) {
  if (!option.values.empty())
    return std::string{option.values};
  if (std::holds_alternative<FlagField>(option.field))
    return "`true`, `false`";
  if (const auto range = range_of(option)) {
    const bool number = std::holds_alternative<CountField>(option.field);
    const auto shown = [&](const std::string& text) { return number ? text : in_backticks(text); };
    return fmt::format("{}{} to {}", range->beside.empty() ? "" : shown(range->beside) + ", ",
                       shown(range->least), shown(range->most));
  }
  std::vector<std::string> names;
  for (const Word& word : words_of(option))
    names.push_back(in_backticks(fmt::format("\"{}\"", word.name)));
  return fmt::format("{}", fmt::join(names, ", "));
}

std::string meaning_in_markdown(const OptionDescriptor& option) {
  std::string text{option.meaning};
  if (!explains_words(option))
    return text;
  for (const Word& word : words_of(option))
    text += fmt::format("<br>`\"{}\"`: {}.", word.name, word.meaning);
  return text;
}

std::string table_in_markdown(std::string_view section, OptionTable table) {
  std::string text = "| option | default | values | meaning |\n|---|---|---|---|\n";
  const auto row = [&](const OptionDescriptor& option, const std::string& fallback,
                       const std::string& meaning) {
    text += fmt::format("| `{}` | `{}` | {} | {} |\n", option.name, fallback,
                        values_in_markdown(option), meaning);
  };
  for (const OptionDescriptor& option : table) {
    if (option.section == section && !option.free_table)
      row(option, default_of(option), meaning_in_markdown(option));
  }
  if (section != kHandler)
    return text;
  for (const OptionDescriptor& option : table) {
    if (option.own != nullptr) {
      row(option, fmt::format("[{}]", option.section),
          fmt::format("As in `[{}]`, for this handler.", option.section));
    }
  }
  return text;
}

// ---- conf/reference.toml ------------------------------------------------------------------------

/// "[text](guarantees.md#place)" as "text (docs/guarantees.md)".
std::string without_links(std::string_view markdown) {
  std::string out;
  while (true) {
    const std::size_t middle = markdown.find("](");
    const std::size_t start =
        middle == std::string_view::npos ? middle : markdown.rfind('[', middle);
    if (start == std::string_view::npos)
      return out + std::string{markdown};
    const std::string_view text = markdown.substr(start + 1, middle - start - 1);
    const std::size_t end = markdown.find(')', middle);
    const std::string_view target = markdown.substr(middle + 2, end - middle - 2);
    const std::string_view file = target.substr(0, target.find('#'));
    out += markdown.substr(0, start);
    out += text == file ? fmt::format("docs/{}", file) : fmt::format("{} (docs/{})", text, file);
    markdown.remove_prefix(end + 1);
  }
}

/// Markdown as a comment reads it: strings are quoted enough.
std::string plain(std::string_view markdown) {
  std::string text = without_links(markdown);
  for (std::size_t at = text.find("`\""); at != std::string::npos; at = text.find("`\"", at)) {
    const std::size_t end = text.find('`', at + 1);
    text.erase(end, 1);
    text.erase(at, 1);
  }
  return text;
}

/// The words of a text on lines of `columns`, each after `prefix`; the first after `first`.
std::string wrapped(const std::string& text, const std::string& first, const std::string& prefix) {
  std::string out;
  std::string line = first;
  bool empty = true;
  std::istringstream words{text};
  for (std::string word; words >> word;) {
    if (!empty && line.size() + 1 + word.size() > kColumns) {
      out += line + "\n";
      line = prefix;
      empty = true;
    }
    line += (empty ? "" : " ") + word;
    empty = false;
  }
  return out + line + "\n";
}

/// What may be written, as the last sentence of a comment; empty where the words are explained.
std::string values_in_words(const OptionDescriptor& option) {
  if (!option.values.empty()) {
    std::string text = plain(option.values) + ".";
    text[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(text[0])));
    return text;
  }
  if (const auto range = range_of(option)) {
    return fmt::format("{}{} to {}.", range->beside.empty() ? "" : range->beside + ", or ",
                       range->least, range->most);
  }
  std::vector<std::string_view> names;
  for (const Word& word : words_of(option))
    names.push_back(word.name);
  return names.empty() || explains_words(option) ? "" : any_of(names) + ".";
}

std::string comment(const OptionDescriptor& option, const std::string& mark) {
  std::string text = plain(option.meaning);
  if (const std::string values = values_in_words(option); !values.empty())
    text += " " + values;
  std::string out = wrapped(text, mark, mark);
  if (!explains_words(option))
    return out;
  std::size_t longest = 0;
  for (const Word& word : words_of(option))
    longest = std::max(longest, word.name.size() + 2);
  for (const Word& word : words_of(option)) {
    const std::string name =
        fmt::format("{}  {:<{}}  ", mark, fmt::format("\"{}\"", word.name), longest);
    out += wrapped(plain(word.meaning), name, mark + std::string(name.size() - mark.size(), ' '));
  }
  return out;
}

/// `name = value` of an example, which may have several lines, as a comment.
std::string example_lines(const OptionDescriptor& option) {
  const std::string value =
      option.example.empty() ? default_of(option) : std::string{option.example};
  std::string out;
  std::istringstream lines{fmt::format("{} = {}", option.name, value)};
  for (std::string line; std::getline(lines, line);)
    out += "# " + line + "\n";
  return out;
}

std::string handler_example(OptionTable table) {
  std::string out = std::string{kHandlers} + "# [[handler]]\n";
  // Not beside sql: handlers of their own.
  std::string second = kSecondHandler;
  std::string third = kThirdHandler;
  for (const OptionDescriptor& option : table) {
    if (option.section != kHandler)
      continue;
    std::string& into = option.name == "function" ? second : option.name == "http" ? third : out;
    into += comment(option, "# # ") + example_lines(option);
  }
  std::string_view section;
  for (const OptionDescriptor& option : table) {
    if (option.own == nullptr)
      continue;
    if (option.section != section)
      out += fmt::format("# # As in [{}], for this handler:\n", option.section);
    section = option.section;
    out += example_lines(option);
  }
  return out + second + third;
}

std::string section_head(std::string_view section, OptionTable table) {
  std::string out = fmt::format("\n[{}]\n", section);
  for (const auto& [name, remark] : kRemarks) {
    if (name == section)
      out += wrapped(plain(remark), "# ", "# ") + "\n";
  }
  const bool own = std::all_of(table.begin(), table.end(), [&](const OptionDescriptor& option) {
    return option.section != section || option.own != nullptr;
  });
  if (own && section != "handler_defaults")
    out += "# Each of these may also stand in a [[handler]], for its messages.\n\n";
  return out;
}

}  // namespace

std::string reference_toml(OptionTable table) {
  std::string out = kHead;
  std::string_view section;
  for (const OptionDescriptor& option : table) {
    if (option.section == kHandler)
      continue;
    if (option.free_table) {
      out += fmt::format("\n[{}]\n{}", option.option(), kProperties);
      continue;
    }
    out += option.section == section ? "\n" : section_head(option.section, table);
    section = option.section;
    out += comment(option, "# ") + fmt::format("{} = {}\n", option.name, default_of(option));
  }
  return out + "\n" + handler_example(table);
}

std::string with_option_tables(std::string_view markdown, OptionTable table) {
  constexpr std::string_view kBegin = "<!-- options: ";
  constexpr std::string_view kBeginEnd = " -->";
  constexpr std::string_view kEnd = "<!-- end of options -->";
  std::vector<std::string_view> missing;
  for (const OptionDescriptor& option : table) {
    if (std::find(missing.begin(), missing.end(), option.section) == missing.end())
      missing.push_back(option.section);
  }
  std::string out;
  bool inside = false;
  std::istringstream lines{std::string{markdown}};
  for (std::string line; std::getline(lines, line);) {
    if (line == kEnd)
      inside = false;
    if (!inside)
      out += line + "\n";
    if (!line.starts_with(kBegin))
      continue;
    const std::string section =
        line.substr(kBegin.size(), line.size() - kBegin.size() - kBeginEnd.size());
    const auto found = std::find(missing.begin(), missing.end(), section);
    if (inside || found == missing.end())
      throw std::runtime_error(fmt::format("no table of options belongs at: {}", line));
    missing.erase(found);
    out += table_in_markdown(section, table);
    inside = true;
  }
  if (inside || !missing.empty()) {
    throw std::runtime_error(
        inside ? fmt::format("a table of options without {}", kEnd)
               : fmt::format("there is no {}{}{}", kBegin, missing.front(), kBeginEnd));
  }
  return out;
}

}  // namespace pawl::config
