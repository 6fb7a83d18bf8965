#include "pawl/app.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <iostream>
#include <memory>
#include <system_error>
#include <vector>

#include "audit/audit_command.hpp"
#include "cli/commands.hpp"
#include "cli/version.hpp"
#include "console/bad_call.hpp"
#include "console/command.hpp"
#include "console/command_tree.hpp"
#include "console/commands_page.hpp"
#include "console/unknown_words.hpp"
#include "dead_letters/commands.hpp"
#include "kafka/bounded_call.hpp"
#include "kafka/handles.hpp"
#include "leases/leases_command.hpp"
#include "outbox/outbox_command.hpp"
#include "pawl/errors.hpp"
#include "postgres/error.hpp"
#include "retention/consumers_command.hpp"
#include "retention/prune_command.hpp"
#include "text/bounded.hpp"

namespace pawl {
namespace {

/// The end of `NAME --help`.
constexpr const char* kEnd =
    "Options of most commands\n"
    "  -c, --config FILE     Configuration file (default: $PAWL_CONFIG)\n"
    "      --set KEY=VALUE   Override one option; repeatable\n"
    "\n"
    "Getting started\n"
    "  {0} init       --topic orders --output orders.toml\n"
    "  {0} migrate up --config orders.toml\n"
    "  {0} check      --config orders.toml\n"
    "  {0} run        --config orders.toml\n"
    "  {0} status     --config orders.toml\n"
    "\n"
    "Exit status\n"
    "  0  success            2  usage or configuration error; nothing was changed\n"
    "  1  failure            3  attention required (audit; status commands with --exit-code)\n"
    "  For the exit status of run, see: {0} run --help\n"
    "\n"
    "Documentation: /usr/share/doc/pawl\n";

/// The innermost subcommand that the command line named, and its words.
struct Chosen {
  const CLI::App* command;
  std::string words;
};

Chosen chosen(const CLI::App& root) {
  Chosen result{&root, root.get_name()};
  while (!result.command->get_subcommands().empty()) {
    result.command = result.command->get_subcommands().front();
    result.words += ' ' + result.command->get_name();
  }
  return result;
}

/// The error of a command line that CLI11 rejects.
std::string text_of(const CLI::ParseError& error) {
  std::string why = error.what();
  if (dynamic_cast<const CLI::ValidationError*>(&error) != nullptr)
    return "invalid value for " + why;
  if (why == "--config is required")
    return why + " (or set PAWL_CONFIG)";
  // Of CLI11's text "--config: 1 required FILE missing" the name is of use.
  if (dynamic_cast<const CLI::ArgumentMismatch*>(&error) != nullptr && why.starts_with('-'))
    return why.substr(0, why.find_first_of(": ")) + " requires a value";
  return why;
}

int reject(const CLI::App& root, const std::string& why) {
  const auto [command, words] = chosen(root);
  std::cerr << fmt::format("error: {}\n  Usage: {}\n", why,
                           cli::usage_text(cli::tree_of(*command), words));
  return cli::kBadCall;
}

int help(const CLI::App& root) {
  const auto [command, words] = chosen(root);
  std::cout << cli::help_text(cli::tree_of(*command), words);
  return cli::kDone;
}

int parse_and_run(CLI::App& root, const cli::Commands& commands, int argc, char** argv) {
  const auto unknown = [&root] {
    return cli::unknown_words_text(cli::tree_of(*chosen(root).command), root.remaining(true));
  };
  try {
    root.parse(argc, argv);
  } catch (const CLI::CallForVersion& version) {
    std::cout << version.what() << '\n';
    return cli::kDone;
  } catch (const CLI::CallForHelp&) {
    const auto why = unknown();
    return why.empty() ? help(root) : reject(root, why);
  } catch (const CLI::ParseError& error) {
    // What is missing is often only misspelled, and CLI11 reports what is missing.
    const auto why = unknown();
    return reject(root, why.empty() ? text_of(error) : why);
  }
  const auto* action = commands.action(chosen(root).command);
  // Nothing was named, or only a group of commands: its page lists them.
  return action == nullptr ? help(root) : (*action)();
}

/// Texts that are made of the commands themselves. They are added last, because they contain all
/// others.
void add_texts(CLI::App& root, cli::Command& program, cli::Commands& commands) {
  auto* completion = program.add_subcommand("completion", "Generate shell completion");
  const auto add = [&](const char* shell, const std::string& description, auto text_of_tree) {
    auto* command = completion->add_subcommand(shell, description);
    commands.set_action(command, [&root, text_of_tree] {
      std::cout << text_of_tree(cli::tree_of(root));
      return cli::kDone;
    });
  };
  const auto name = root.get_name();
  add("bash", fmt::format("Generate completion for bash: source <({} completion bash)", name),
      cli::bash_completion);
  add("zsh", fmt::format("Generate completion for zsh: source <({} completion zsh)", name),
      cli::zsh_completion);
  auto* manual = program.add_subcommand(
      "manual", fmt::format("Generate the manual page ({} manual | man -l -)", name));
  auto markdown = std::make_shared<bool>(false);
  manual->add_flag("--markdown", *markdown, "Generate Markdown instead");
  commands.set_action(manual, [&root, markdown] {
    const auto tree = cli::tree_of(root);
    std::cout << (*markdown ? cli::commands_page(tree)
                            : cli::manual_page(tree, fmt::format("pawl {}", cli::pawl_version())));
    return cli::kDone;
  });
}

void add_commands(cli::Command& program, cli::Commands& commands) {
  program.begin_group("Set up");
  cli::add_init(program, commands);
  cli::add_migrate(program, commands);
  cli::add_check(program, commands);
  cli::add_try(program, commands);
  cli::add_config(program, commands);
  program.begin_group("Run");
  cli::add_run(program, commands);
  cli::add_relay(program, commands);
  cli::add_dashboard(program, commands);
  program.begin_group("Observe");
  cli::add_status(program, commands);
  cli::add_tail(program, commands);
  cli::add_offsets(program, commands);
  cli::add_consumers(program, commands);
  cli::add_audit(program, commands);
  program.begin_group("Fix");
  cli::add_partitions(program, commands);
  cli::add_dlq(program, commands);
  cli::add_skipped(program, commands);
  cli::add_outbox(program, commands);
  cli::add_leases(program, commands);
  cli::add_keys(program, commands);
  cli::add_prune(program, commands);
  program.begin_group("Other");
  cli::add_version(program, commands);
}

std::string explain(const std::string& program, const postgres::Error& error) {
  if (error.is_of_set_up()) {
    return fmt::format(
        "PostgreSQL: {} (SQLSTATE {})\n"
        "  Missing tables and privileges:    {} check\n"
        "  Privileges that a role requires:  {} migrate grants --role ROLE",
        error.what(), error.sqlstate(), program, program);
  }
  return fmt::format(
      "PostgreSQL: {}{}. Fix the cause, then repeat the command", error.what(),
      error.sqlstate().empty() ? "" : fmt::format(" (SQLSTATE {})", error.sqlstate()));
}

int run_command_line(const std::string& name, const Registry& registry, int argc, char** argv) {
  const auto fail = [](const std::string& why, int code) {
    std::cerr << "error: " << texts::bounded(why, texts::kLongestLine) << '\n';
    return code;
  };
  try {
    std::error_code unknown;
    const auto path = std::filesystem::read_symlink("/proc/self/exe", unknown);
    cli::Commands commands({name, registry, unknown ? argv[0] : path.string(),
                            std::vector<std::string>(argv, argv + argc)});
    CLI::App root{"Apply Kafka messages to PostgreSQL exactly once", name};
    // Commands inherit these. Without the limit, a word after a command may mean another command.
    root.require_subcommand(0, 1);
    root.set_help_flag("-h,--help", "Show this help");
    root.footer(cli::exit_status_text(cli::kUsualExitStatus));
    cli::Command program(root);
    add_commands(program, commands);
    add_texts(root, program, commands);
    root.set_help_flag("-h,--help", "Show help for a command");
    root.set_version_flag("--version", fmt::format("{} (pawl {})", name, cli::pawl_version()),
                          "Show the version");
    root.footer(fmt::format(kEnd, name));
    return parse_and_run(root, commands, argc, argv);
  } catch (const ConfigErrors& errors) {
    for (const auto& problem : errors.problems())
      std::cerr << "error: " << problem << '\n';
    return cli::kBadCall;
  } catch (const cli::BadCall& error) {
    return fail(error.what(), cli::kBadCall);
  } catch (const postgres::Error& error) {
    return fail(explain(name, error), cli::kFailed);
  } catch (const kafka::KafkaError& error) {
    return fail(
        fmt::format("Kafka: {}. If the brokers respond, check [kafka.librdkafka]", error.what()),
        cli::kFailed);
  } catch (const std::exception& error) {
    return fail(error.what(), cli::kFailed);
  }
}

}  // namespace

App::App(std::string name) : name_(std::move(name)) {}

int App::main(int argc, char** argv) {
  // If a connection or a log reader closes, one write fails; the process continues.
  std::signal(SIGPIPE, SIG_IGN);
  const int code = run_command_line(name_, registry_, argc, argv);
  if (kafka::calls_in_progress() == 0)
    return code;
  // The threads of a Kafka client that was left behind use objects that destructors take down.
  std::cout.flush();
  std::fflush(nullptr);
  std::_Exit(code);
}

}  // namespace pawl
