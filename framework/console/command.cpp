#include "console/command.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <cstring>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <type_traits>
#include <vector>

namespace pawl::cli {

namespace {

/// What a value must be instead. App::main() writes "invalid value for --limit: " before it.
std::string invalid(const std::string& input, std::string_view instead) {
  return fmt::format("\"{}\". Use {}", input, instead);
}

template <typename Number>
std::errc parse(const std::string& input, Number& value) {
  const auto* const end = input.data() + input.size();
  const auto [stopped, error] = std::from_chars(input.data(), end, value);
  return error == std::errc{} && stopped != end ? std::errc::invalid_argument : error;
}

/// CLI11's own text of a range without an end is a number of three hundred digits.
template <typename Number, typename Fits>
CLI::Validator only(const std::string& range, Fits fits) {
  return {[range, fits](std::string& input) {
            Number value{};
            const bool well = parse(input, value) == std::errc{} && fits(value);
            return well ? std::string() : invalid(input, range);
          },
          ""};
}

/// CLI11's own cast makes the largest number of one that is larger, and its text of one that is no
/// number names only the option.
template <typename Number>
CLI::Validator a_number() {
  return {[](std::string& input) {
            Number value{};
            const auto error = parse(input, value);
            if (error == std::errc{})
              return std::string();
            if (error != std::errc::result_out_of_range)
              return invalid(input, "a whole number");
            using Limits = std::numeric_limits<Number>;
            return invalid(input,
                           fmt::format("a number from {} to {}", Limits::min(), Limits::max()));
          },
          ""};
}

/// "dead, parked, or all"
std::string either(const std::vector<std::string>& words) {
  std::string text;
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (i > 0)
      text += words.size() > 2 ? ", " : " ";
    if (i > 0 && i + 1 == words.size())
      text += "or ";
    text += words[i];
  }
  return text;
}

/// The type of a whole number: an option's value, one in a list of them, or one that may be
/// missing. Otherwise void.
template <typename T>
struct WholeNumber {
  using Type = std::conditional_t<std::is_integral_v<T> && !std::is_same_v<T, bool>, T, void>;
};
template <typename T>
struct WholeNumber<std::vector<T>> : WholeNumber<T> {};
template <typename T>
struct WholeNumber<std::optional<T>> : WholeNumber<T> {};

}  // namespace

std::string exit_status_text(const std::vector<ExitStatus>& codes, const std::string& note) {
  std::size_t width = 0;
  for (const auto& status : codes)
    width = std::max(width, std::strlen(status.code));
  std::string text = "Exit status\n";
  for (const auto& status : codes)
    text += fmt::format("  {:<{}}  {}\n", status.code, width, status.meaning);
  return text + (note.empty() ? "" : fmt::format("  {}\n", note));
}

Argument* Argument::required() {
  option_.required();
  return this;
}

Argument* Argument::type_name(const std::string& name) {
  option_.type_name(name);
  return this;
}

Argument* Argument::reason() {
  option_.check({[](std::string& input) {
                   return input == "TEXT" ? invalid(input, "the reason itself, in quotes")
                                          : std::string();
                 },
                 ""});
  return type_name("TEXT");
}

Argument* Argument::shows_default() {
  option_.capture_default_str();
  return this;
}

Argument* Argument::from_environment(const std::string& variable) {
  option_.envname(variable);
  return this;
}

Argument* Argument::positive() {
  option_.check(only<double>("a number greater than 0", [](double value) { return value > 0; }));
  return this;
}

Argument* Argument::not_negative() {
  option_.check(only<double>("a number of 0 or more", [](double value) { return value >= 0; }));
  return this;
}

Argument* Argument::within(std::int64_t least, std::int64_t most) {
  option_.check(only<std::int64_t>(
      fmt::format("a number from {} to {}", least, most),
      [least, most](std::int64_t value) { return least <= value && value <= most; }));
  return this;
}

Argument* Argument::at_most_entries() {
  return within(1, kMostEntries)->type_name("N");
}

Argument* Argument::one_of(const std::vector<std::string>& words) {
  option_.check({[words](std::string& input) {
                   const bool known = std::find(words.begin(), words.end(), input) != words.end();
                   return known ? std::string() : invalid(input, either(words));
                 },
                 ""});
  return this;
}

Argument* Argument::value_or(const std::string& value) {
  option_.expected(0, 1)->default_str(value);
  return this;
}

Argument* Argument::one_value_each() {
  option_.allow_extra_args(false);
  return this;
}

Argument* Argument::separated_by_commas() {
  option_.delimiter(',')->allow_extra_args(false);
  return this;
}

Argument* Argument::needs(const Argument* other) {
  option_.needs(&other->option_);
  return this;
}

Argument* Argument::excludes(const Argument* other) {
  option_.excludes(&other->option_);
  return this;
}

Command::Command(CLI::App& parser) : parser_(parser) {}

std::string Command::program() const {
  const auto* parser = &parser_;
  while (parser->get_parent() != nullptr)
    parser = parser->get_parent();
  return parser->get_name();
}

Command::~Command() = default;

Command* Command::add_subcommand(const std::string& name, const std::string& description) {
  auto* const parser = parser_.add_subcommand(name, description);
  parser->group(group_);
  return subcommands_.emplace_back(std::make_unique<Command>(*parser)).get();
}

template <typename T>
Argument* Command::add_option(const std::string& names, T& value, const std::string& description) {
  auto* const option = parser_.add_option(names, value, description);
  if constexpr (!std::is_void_v<typename WholeNumber<T>::Type>)
    option->check(a_number<typename WholeNumber<T>::Type>());
  return arguments_.emplace_back(std::make_unique<Argument>(*option)).get();
}

template Argument* Command::add_option(const std::string&, std::string&, const std::string&);
template Argument* Command::add_option(const std::string&, std::vector<std::string>&,
                                       const std::string&);
template Argument* Command::add_option(const std::string&, std::vector<std::int64_t>&,
                                       const std::string&);
template Argument* Command::add_option(const std::string&, std::optional<std::int32_t>&,
                                       const std::string&);
template Argument* Command::add_option(const std::string&, std::optional<std::int64_t>&,
                                       const std::string&);
template Argument* Command::add_option(const std::string&, std::int64_t&, const std::string&);
template Argument* Command::add_option(const std::string&, std::size_t&, const std::string&);
template Argument* Command::add_option(const std::string&, double&, const std::string&);
template Argument* Command::add_option(const std::string&, std::optional<std::string>&,
                                       const std::string&);

void Command::add_flag(const std::string& name, bool& value, const std::string& description) {
  parser_.add_flag(name, value, description);
}

void Command::add_json_flag(bool& value) {
  add_flag("--json", value, "Print JSON");
}

void Command::footer(const std::string& text) {
  parser_.footer(text);
}

}  // namespace pawl::cli
