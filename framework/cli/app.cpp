#include "pawl/app.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <csignal>
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
#include "console/command_tree.hpp"
#include "console/commands_page.hpp"
#include "console/unknown_words.hpp"
#include "dead_letters/commands.hpp"
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

constexpr const char* kBegin =
    "Begin with:\n"
    "  {0} check --config FILE           is everything in place? says all that is not\n"
    "  {0} run --config FILE             consume until SIGTERM or SIGINT\n"
    "  {0} status --config FILE          how it goes, and what needs you\n"
    "Each subcommand explains itself: {0} SUBCOMMAND --help\n";

constexpr const char* kExitCodes =
    "Exit codes:\n"
    "  0         done: the command succeeded; run: stopped as asked, or drained\n"
    "  1         failed; the reason is on stderr (of check: on stdout); audit: there are findings\n"
    "  2         the command line or the configuration is wrong; nothing was changed\n"
    "  3         status --exit-code: something needs a person\n"
    "  4         run --drain: at the end, but a partition is halted, or paused before its end\n"
    "  5         run: stopped, but what was in hand was abandoned after shutdown_timeout;\n"
    "            safe, it runs again\n"
    "  6         run: a handler did not return, and could not be interrupted; safe, its\n"
    "            message runs again\n"
    "  130, 143  run: a second SIGINT or SIGTERM ended it at once; safe as well\n";

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

int parse_and_run(CLI::App& root, const cli::Commands& commands, int argc, char** argv) {
  try {
    root.parse(argc, argv);
  } catch (const CLI::CallForVersion& version) {
    std::cout << version.what() << '\n';
    return cli::kDone;
  } catch (const CLI::CallForHelp&) {
    std::cout << root.help();
    return cli::kDone;
  } catch (const CLI::ParseError& error) {
    const auto [command, words] = chosen(root);
    // What is missing is often only written wrong, and CLI11 tells of that alone.
    const auto unknown = cli::unknown_words_text(cli::tree_of(*command), root.remaining(true));
    std::cerr << fmt::format("{}: {}\nSee: {} --help\n", words,
                             unknown.empty() ? error.what() : unknown, words);
    return cli::kBadCall;
  }
  const auto* action = commands.action(chosen(root).command);
  if (action == nullptr) {
    // Only a group of subcommands was named, or nothing: show what there is.
    std::cout << root.help();
    return cli::kDone;
  }
  return (*action)();
}

/// Texts that are made of the command line itself. Added last: they speak of all the others.
void add_texts(CLI::App& root, cli::Command& program, cli::Commands& commands) {
  auto* completion =
      program.add_subcommand("completion", "Print what completes commands in a shell");
  const auto add = [&](const char* shell, const std::string& description, auto text_of) {
    auto* command = completion->add_subcommand(shell, description);
    commands.set_action(command, [&root, text_of] {
      std::cout << text_of(cli::tree_of(root));
      return cli::kDone;
    });
  };
  const auto name = root.get_name();
  add("bash", fmt::format("For bash: source <({} completion bash)", name), cli::bash_completion);
  add("zsh", fmt::format("For zsh: source <({} completion zsh)", name), cli::zsh_completion);
  auto* manual = program.add_subcommand(
      "manual", fmt::format("Print the manual page: {} manual | man -l -", name));
  auto markdown = std::make_shared<bool>(false);
  manual->add_flag("--markdown", *markdown, "Generate Markdown instead");
  commands.set_action(manual, [&root, markdown] {
    const auto tree = cli::tree_of(root);
    std::cout << (*markdown ? cli::commands_page(tree)
                            : cli::manual_page(tree, fmt::format("pawl {}", cli::pawl_version())));
    return cli::kDone;
  });
}

std::string explain(const std::string& program, const postgres::Error& error) {
  if (error.is_of_set_up()) {
    return fmt::format(
        "PostgreSQL: {} (SQLSTATE {}); `check` names missing tables and rights, "
        "`{} migrate grants` prints the rights that a role needs",
        error.what(), error.sqlstate(), program);
  }
  return fmt::format(
      "PostgreSQL: {}{}; correct that and repeat the command", error.what(),
      error.sqlstate().empty() ? "" : fmt::format(" (SQLSTATE {})", error.sqlstate()));
}

}  // namespace

App::App(std::string name) : name_(std::move(name)) {}

int App::main(int argc, char** argv) {
  // A connection or a log reader that went away is an error of one write, not the process' end.
  std::signal(SIGPIPE, SIG_IGN);
  const auto fail = [this](const std::string& why, int code) {
    std::cerr << name_ << ": " << texts::bounded(why, texts::kLongestLine) << '\n';
    return code;
  };
  try {
    std::error_code unknown;
    const auto path = std::filesystem::read_symlink("/proc/self/exe", unknown);
    cli::Commands commands({name_, registry_, unknown ? argv[0] : path.string(),
                            std::vector<std::string>(argv, argv + argc)});
    CLI::App root{"Applies each Kafka message to PostgreSQL exactly once in effect.", name_};
    root.set_version_flag("--version", fmt::format("{} (pawl {})", name_, cli::pawl_version()));
    cli::Command program(root);
    cli::add_run(program, commands);
    cli::add_relay(program, commands);
    cli::add_init(program, commands);
    cli::add_migrate(program, commands);
    cli::add_check(program, commands);
    cli::add_try(program, commands);
    cli::add_config(program, commands);
    cli::add_status(program, commands);
    cli::add_tail(program, commands);
    cli::add_dashboard(program, commands);
    cli::add_offsets(program, commands);
    cli::add_partitions(program, commands);
    cli::add_skipped(program, commands);
    cli::add_dlq(program, commands);
    cli::add_leases(program, commands);
    cli::add_outbox(program, commands);
    cli::add_audit(program, commands);
    cli::add_keys(program, commands);
    cli::add_prune(program, commands);
    cli::add_consumers(program, commands);
    cli::add_version(program, commands);
    // Set last: subcommands would inherit it.
    root.footer(fmt::format(kBegin, name_) + '\n' + kExitCodes);
    root.get_subcommand("run")->footer(kExitCodes);
    add_texts(root, program, commands);
    return parse_and_run(root, commands, argc, argv);
  } catch (const ConfigErrors& errors) {
    for (const auto& problem : errors.problems())
      std::cerr << problem << '\n';
    return cli::kBadCall;
  } catch (const cli::BadCall& error) {
    return fail(error.what(), cli::kBadCall);
  } catch (const postgres::Error& error) {
    return fail(explain(name_, error), cli::kFailed);
  } catch (const kafka::KafkaError& error) {
    return fail(fmt::format("Kafka: {}; if brokers do answer there, look at [kafka.librdkafka]",
                            error.what()),
                cli::kFailed);
  } catch (const std::exception& error) {
    return fail(error.what(), cli::kFailed);
  }
}

}  // namespace pawl
