#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace pawl::cli {

/// Nobody reads more, and memory holds them.
inline constexpr std::int64_t kMostEntries = 1000000;

/// One argument of a subcommand; each call says more of it and returns it. What does not hold is
/// told to the user when the command line is parsed.
class Argument {
 public:
  explicit Argument(CLI::Option& option) : option_(option) {}

  Argument* required();
  /// What --help calls its value.
  Argument* type_name(const std::string& name);
  /// Why an operator changes something, which is kept. Commands that texts print have TEXT in its
  /// place, and one that was pasted as it is would keep that.
  Argument* reason();
  /// --help shows the default.
  Argument* shows_default();
  Argument* positive();
  Argument* not_negative();
  Argument* within(std::int64_t least, std::int64_t most);
  /// What every --limit takes: from 1 to kMostEntries.
  Argument* at_most_entries();
  enum class Help { kLists, kSilent };
  Argument* one_of(const std::vector<std::string>& words, Help help = Help::kSilent);
  /// May stand without a value, and has this one then.
  Argument* value_or(const std::string& value);
  /// Each use takes one value; without it, all words up to the next option.
  Argument* one_value_each();
  /// Each use takes values with commas between.
  Argument* separated_by_commas();
  Argument* needs(const Argument* other);
  Argument* excludes(const Argument* other);

 private:
  CLI::Option& option_;
};

/// A subcommand being set up. CLI11 stands behind it, in command.cpp and app.cpp alone: it is all
/// headers, and costs every file that includes it several seconds.
class Command {
 public:
  explicit Command(CLI::App& parser);
  ~Command();
  Command(const Command&) = delete;
  Command& operator=(const Command&) = delete;

  [[nodiscard]] const CLI::App* parser() const { return &parser_; }
  /// The name of the program that it is a command of.
  [[nodiscard]] std::string program() const;

  Command* add_subcommand(const std::string& name, const std::string& description);
  /// "-c,--config", or without dashes one that is known by its place. What the user says is stored
  /// in `value`, which must outlive the parsing. Its types are those of command.cpp.
  template <typename T>
  Argument* add_option(const std::string& names, T& value, const std::string& description);
  /// A name that an option has had: it is read as before, and shown nowhere.
  template <typename T>
  void add_old_name(const std::string& name, T& value);
  void add_flag(const std::string& name, bool& value, const std::string& description);
  /// What --help ends with.
  void footer(const std::string& text);

 private:
  CLI::App& parser_;
  std::vector<std::unique_ptr<Command>> subcommands_;
  std::vector<std::unique_ptr<Argument>> arguments_;
};

}  // namespace pawl::cli
