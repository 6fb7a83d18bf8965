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

/// Limit of every --limit: an operator reads fewer, and memory holds them.
inline constexpr std::int64_t kMostEntries = 1000000;

/// One option or argument of a command; each call declares more about it and returns it. What
/// does not hold is reported to the user when the command line is parsed.
class Argument {
 public:
  explicit Argument(CLI::Option& option) : option_(option) {}

  Argument* required();
  /// The placeholder of its value in --help.
  Argument* type_name(const std::string& name);
  /// Why an operator changes something; it is stored. Commands that texts print have the
  /// placeholder TEXT, so TEXT itself is rejected.
  Argument* reason();
  /// --help shows the default.
  Argument* shows_default();
  /// The default comes from an environment variable.
  Argument* from_environment(const std::string& variable);
  Argument* positive();
  Argument* not_negative();
  Argument* within(std::int64_t least, std::int64_t most);
  /// The range of every --limit: from 1 to kMostEntries.
  Argument* at_most_entries();
  Argument* one_of(const std::vector<std::string>& words);
  /// It may be given without a value, and has this one then.
  Argument* value_or(const std::string& value);
  /// Each use takes one value; without this, all words up to the next option.
  Argument* one_value_each();
  /// Each use takes values with commas between.
  Argument* separated_by_commas();
  Argument* needs(const Argument* other);
  Argument* excludes(const Argument* other);

 private:
  CLI::Option& option_;
};

/// An exit code of a command, and what it means: {"3", "attention required"}.
struct ExitStatus {
  const char* code;
  const char* meaning;
};

/// "Exit status" with one line per code; `note`: a last line. Empty: none.
[[nodiscard]] std::string exit_status_text(const std::vector<ExitStatus>& codes,
                                           const std::string& note = "");

/// A command being set up. CLI11 is behind it, in command.cpp, command_tree.cpp, and app.cpp alone:
/// it consists of headers only, and costs every file that includes it several seconds.
class Command {
 public:
  explicit Command(CLI::App& parser);
  ~Command();
  Command(const Command&) = delete;
  Command& operator=(const Command&) = delete;

  [[nodiscard]] const CLI::App* parser() const { return &parser_; }
  /// The name of the program that has this command.
  [[nodiscard]] std::string program() const;

  /// The heading under which --help lists the subcommands that are added from now on.
  void begin_group(const std::string& heading) { group_ = heading; }
  Command* add_subcommand(const std::string& name, const std::string& description);
  /// "-c,--config", or without dashes an argument that is known by its place. The value is stored
  /// in `value`, which must outlive the parsing. Its types are those of command.cpp.
  template <typename T>
  Argument* add_option(const std::string& names, T& value, const std::string& description);
  void add_flag(const std::string& name, bool& value, const std::string& description);
  /// --json, of every command that prints data or changes something.
  void add_json_flag(bool& value);
  /// The end of --help in place of the usual exit status: notes, and an exit status of its own.
  void footer(const std::string& text);
  void exit_status(const std::vector<ExitStatus>& codes) { footer(exit_status_text(codes)); }

 private:
  CLI::App& parser_;
  std::string group_;
  std::vector<std::unique_ptr<Command>> subcommands_;
  std::vector<std::unique_ptr<Argument>> arguments_;
};

}  // namespace pawl::cli
