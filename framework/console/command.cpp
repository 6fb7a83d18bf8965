#include "console/command.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <charconv>
#include <optional>
#include <string>
#include <system_error>
#include <type_traits>
#include <vector>

namespace pawl::cli {

namespace {

/// CLI11's own text of a range without an end is a number of three hundred digits.
template <typename Number, typename Fits>
CLI::Validator only(const std::string& range, Fits fits) {
  return {[range, fits](std::string& input) {
            Number value{};
            const auto* const end = input.data() + input.size();
            const auto [stopped, error] = std::from_chars(input.data(), end, value);
            const bool well = error == std::errc{} && stopped == end && fits(value);
            return well ? std::string() : fmt::format("{} is not {}", input, range);
          },
          ""};
}

/// CLI11's own cast makes the largest number of one that is larger.
template <typename Number>
CLI::Validator no_larger() {
  return {[](std::string& input) {
            Number value{};
            const auto error = std::from_chars(input.data(), input.data() + input.size(), value).ec;
            return error == std::errc::result_out_of_range
                       ? fmt::format("{} is too large, or too small, a number", input)
                       : std::string();
          },
          ""};
}

/// Of an option's value, a list of them, or one that may be missing: where it is a whole number.
template <typename T>
struct WholeNumber {
  using Type = std::conditional_t<std::is_integral_v<T> && !std::is_same_v<T, bool>, T, void>;
};
template <typename T>
struct WholeNumber<std::vector<T>> : WholeNumber<T> {};
template <typename T>
struct WholeNumber<std::optional<T>> : WholeNumber<T> {};

}  // namespace

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
                   return input == "TEXT" ? "TEXT stands for the reason: write why, in quotes"
                                          : std::string();
                 },
                 ""});
  return type_name("TEXT");
}

Argument* Argument::shows_default() {
  option_.capture_default_str();
  return this;
}

Argument* Argument::positive() {
  option_.check(only<double>("a number above 0", [](double value) { return value > 0; }));
  return this;
}

Argument* Argument::not_negative() {
  option_.check(only<double>("a number from 0 on", [](double value) { return value >= 0; }));
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

Argument* Argument::one_of(const std::vector<std::string>& words, Help help) {
  CLI::Validator member = CLI::IsMember(words);
  if (help == Help::kSilent)
    member.description("");
  option_.check(member);
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
  return subcommands_.emplace_back(std::make_unique<Command>(*parser)).get();
}

template <typename T>
Argument* Command::add_option(const std::string& names, T& value, const std::string& description) {
  auto* const option = parser_.add_option(names, value, description);
  if constexpr (!std::is_void_v<typename WholeNumber<T>::Type>)
    option->check(no_larger<typename WholeNumber<T>::Type>());
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

template <typename T>
void Command::add_old_name(const std::string& name, T& value) {
  parser_.add_option(name, value)->group("");
}

template void Command::add_old_name(const std::string&, std::string&);
template void Command::add_old_name(const std::string&, std::optional<std::string>&);

void Command::add_flag(const std::string& name, bool& value, const std::string& description) {
  parser_.add_flag(name, value, description);
}

void Command::footer(const std::string& text) {
  parser_.footer(text);
}

}  // namespace pawl::cli
