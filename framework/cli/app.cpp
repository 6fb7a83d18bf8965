#include "pawl/app.hpp"

#include <CLI/CLI.hpp>
#include <csignal>
#include <exception>
#include <iostream>

#include "cli/commands.hpp"
#include "pawl/errors.hpp"

namespace pawl {
namespace {

constexpr const char* kExitCodes =
    "Exit codes:\n"
    "  0         done: the command succeeded; run: stopped as asked, or drained\n"
    "  1         failed; the reason is on stderr\n"
    "  2         the command line or the configuration is wrong; nothing was changed\n"
    "  4         run --drain: at the end, but at least one partition is halted\n"
    "  5         run: stopped, but what was in hand was abandoned after shutdown_timeout;\n"
    "            safe, it runs again\n"
    "  130, 143  run: a second SIGINT or SIGTERM ended it at once; safe as well\n";

const CLI::App* chosen(const CLI::App& root) {
  const auto* command = &root;
  while (!command->get_subcommands().empty()) command = command->get_subcommands().front();
  return command;
}

int parse_and_run(CLI::App& root, cli::Commands& commands, int argc, char** argv) {
  try {
    root.parse(argc, argv);
  } catch (const CLI::CallForHelp&) {
    std::cout << chosen(root)->help();
    return cli::kDone;
  } catch (const CLI::ParseError& error) {
    std::cerr << commands.program().name << ": " << error.what() << "\nSee: "
              << chosen(root)->get_display_name() << " --help\n";
    return cli::kBadCall;
  }
  const auto* action = commands.action(chosen(root));
  if (action == nullptr) {
    std::cout << chosen(root)->help();
    return cli::kDone;
  }
  return (*action)();
}

}  // namespace

App::App(std::string name) : name_(std::move(name)) {}

int App::main(int argc, char** argv) {
  // A connection or a log reader that went away is an error of one write, not the process' end.
  std::signal(SIGPIPE, SIG_IGN);
  cli::Commands commands({name_, registry_});
  CLI::App root{"Applies each Kafka message to PostgreSQL exactly once in effect.", name_};
  root.footer(kExitCodes);
  cli::add_run(root, commands);
  cli::add_version(root, commands);
  try {
    return parse_and_run(root, commands, argc, argv);
  } catch (const ConfigErrors& errors) {
    for (const auto& problem : errors.problems()) std::cerr << problem << '\n';
    return cli::kBadCall;
  } catch (const std::exception& error) {
    std::cerr << name_ << ": " << error.what() << '\n';
    return cli::kFailed;
  }
}

}  // namespace pawl
