#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>

#include "console/command_tree.hpp"

namespace pawl::cli {
namespace {

/// Each command with the words that lead to it: "pawl dlq replay".
void flatten(const CommandTree& tree, const std::string& before,
             std::vector<std::pair<std::string, const CommandTree*>>& into) {
  const auto path = before.empty() ? tree.name : before + " " + tree.name;
  into.emplace_back(path, &tree);
  for (const auto& subcommand : tree.subcommands)
    flatten(subcommand, path, into);
}

std::vector<std::pair<std::string, const CommandTree*>> flat(const CommandTree& program) {
  std::vector<std::pair<std::string, const CommandTree*>> commands;
  flatten(program, "", commands);
  return commands;
}

/// `text` in single quotes, for either shell.
std::string single_quoted(std::string_view text) {
  std::string result = "'";
  for (const char c : text) {
    if (c == '\'') {
      result += "'\\''";
    } else {
      result += c;
    }
  }
  return result + "'";
}

std::string any_of(const std::vector<std::string>& words) {
  std::vector<std::string> patterns;
  for (const auto& word : words)
    patterns.push_back(single_quoted(word));
  return fmt::format("{}", fmt::join(patterns, " | "));
}

/// Of all commands, those options that take a file or a folder.
std::string file_options(const std::vector<std::pair<std::string, const CommandTree*>>& commands) {
  std::vector<std::string> names;
  for (const auto& [path, command] : commands) {
    for (const auto& option : command->options) {
      if (option.value != "FILE" && option.value != "DIR")
        continue;
      for (const auto& name : option.names) {
        if (std::find(names.begin(), names.end(), name) == names.end())
          names.push_back(name);
      }
    }
  }
  return any_of(names);
}

/// All paths but the program's own: which words lead from one command to the next.
std::string steps(const std::vector<std::pair<std::string, const CommandTree*>>& commands) {
  std::vector<std::string> paths;
  for (std::size_t i = 1; i < commands.size(); ++i)
    paths.push_back(commands[i].first);
  return any_of(paths);
}

std::string function_name(const CommandTree& program) {
  std::string name = "_";
  for (const char c : program.name)
    name += std::isalnum(static_cast<unsigned char>(c)) != 0 ? c : '_';
  return name;
}

}  // namespace

std::string bash_completion(const CommandTree& program) {
  const auto commands = flat(program);
  const auto function = function_name(program);
  std::string cases;
  for (const auto& [path, command] : commands) {
    std::vector<std::string> words;
    for (const auto& subcommand : command->subcommands)
      words.push_back(subcommand.name);
    for (const auto& option : command->options) {
      if (!option.by_place)
        words.push_back(option.names.back());
    }
    cases += fmt::format("    {}) words={} ;;\n", single_quoted(path),
                         single_quoted(fmt::format("{}", fmt::join(words, " "))));
  }
  return fmt::format(R"(# bash completion of {0}
{1}() {{
  local current=${{COMP_WORDS[COMP_CWORD]}} path={2} word words=''
  COMPREPLY=()
  for word in "${{COMP_WORDS[@]:1:COMP_CWORD-1}}"; do
    case "$path $word" in
    {3}) path+=" $word" ;;
    esac
  done
  case ${{COMP_WORDS[COMP_CWORD - 1]}} in
  {4})
    mapfile -t COMPREPLY < <(compgen -f -- "$current")
    compopt -o filenames 2>/dev/null || true
    return
    ;;
  esac
  case $path in
{5}  esac
  mapfile -t COMPREPLY < <(compgen -W "$words" -- "$current")
}}
complete -F {1} {0}
)",
                     program.name, function, single_quoted(program.name), steps(commands),
                     file_options(commands), cases);
}

std::string zsh_completion(const CommandTree& program) {
  const auto commands = flat(program);
  const auto function = function_name(program);
  const auto item = [](const std::string& name, const std::string& description) {
    std::string text;
    for (const char c : name + ":" + description) {
      // What stands behind the first colon is the description.
      if (c == ':' && text.size() > name.size())
        text += '\\';
      text += c;
    }
    return single_quoted(text);
  };
  std::string cases;
  for (const auto& [path, command] : commands) {
    std::vector<std::string> items;
    for (const auto& subcommand : command->subcommands)
      items.push_back(item(subcommand.name, subcommand.description));
    for (const auto& option : command->options) {
      if (!option.by_place)
        items.push_back(item(option.names.back(), option.description));
    }
    cases += fmt::format("    ({}) items=({}) ;;\n", single_quoted(path), fmt::join(items, " "));
  }
  return fmt::format(R"(#compdef {0}
{1}() {{
  local at={2} word
  local -a items
  for word in "${{(@)words[2,CURRENT-1]}}"; do
    case "$at $word" in
    ({3}) at+=" $word" ;;
    esac
  done
  case ${{words[CURRENT-1]}} in
  ({4}) _files; return ;;
  esac
  case $at in
{5}  esac
  _describe command items
}}
if [[ $funcstack[1] == {1} ]]; then
  {1} "$@"
else
  compdef {1} {0}
fi
)",
                     program.name, function, single_quoted(program.name), steps(commands),
                     file_options(commands), cases);
}

}  // namespace pawl::cli
