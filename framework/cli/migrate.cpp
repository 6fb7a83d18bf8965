// `migrate`: hands over to the script that applies the SQL files, with the configuration's
// database.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <system_error>
#include <utility>
#include <vector>

#include "cli/commands.hpp"
#include "config/invocation.hpp"
#include "config/shell_word.hpp"
#include "console/bad_call.hpp"
#include "console/config_arguments.hpp"
#include "pawl/errors.hpp"
#include "postgres/connecting.hpp"
#include "postgres/connection_string.hpp"

namespace pawl::cli {
namespace {

namespace fs = std::filesystem;

constexpr const char* kOnPath = "pawl-migrate";

/// The script's options; what is empty is left to it.
struct Arguments {
  std::string database;
  std::string dir;
  std::string name;
  std::string schema;
  std::string lock_timeout;
  std::string role;
  bool exit_code = false;
  bool json = false;
  bool sql = false;
  bool publisher = false;
  bool relay = false;
};

/// Beside this program as it is installed, or as it is built in a checkout; else "pawl-migrate",
/// which is looked for on the path.
std::string script() {
  if (const char* named = std::getenv("PAWL_MIGRATE"); named != nullptr && *named != '\0')
    return named;
  std::error_code error;
  const auto program = fs::read_symlink("/proc/self/exe", error);
  if (error)
    return kOnPath;
  const auto folder = program.parent_path();
  for (const auto* place : {"../share/pawl", "../../.."}) {
    const auto root = (folder / place).lexically_normal();
    if (fs::exists(root / "migrations/0001_consumers.sql", error) &&
        ::access((root / "scripts/migrate").c_str(), X_OK) == 0)
      return (root / "scripts/migrate").string();
  }
  return kOnPath;
}

std::vector<std::string> words_of(const std::string& command, const Arguments& arguments) {
  std::vector<std::string> words{script(), command};
  const auto option = [&](const char* name, const std::string& value) {
    if (!value.empty())
      words.insert(words.end(), {name, value});
  };
  option("--dir", arguments.dir);
  option("--name", arguments.name);
  option("--schema", arguments.schema);
  option("--lock-timeout", arguments.lock_timeout);
  option("--role", arguments.role);
  for (const auto& [name, given] :
       {std::pair{"--exit-code", arguments.exit_code}, std::pair{"--json", arguments.json},
        std::pair{"--sql", arguments.sql}, std::pair{"--publisher", arguments.publisher},
        std::pair{"--relay", arguments.relay}}) {
    if (given)
      words.emplace_back(name);
  }
  return words;
}

/// What leads to the same database and files again, for commands in texts of the script.
std::string given_words(const InvocationOptions& invocation, const Arguments& arguments) {
  std::vector<std::string> words;
  const auto option = [&](const char* name, const std::string& value) {
    if (!value.empty())
      words.push_back(fmt::format("{} {}", name, shell_word(value)));
  };
  if (!invocation.config_file.empty()) {
    if (auto config = config_words(invocation); !config.empty())
      words.push_back(std::move(config));
  }
  if (!arguments.database.empty())
    words.emplace_back("--database URL");  // it may hold a password
  option("--dir", arguments.dir);
  option("--name", arguments.name);
  option("--schema", arguments.schema);
  return fmt::format("{}", fmt::join(words, " "));
}

/// Becomes the script, whose exit code is this command's. The database's URL may hold a password,
/// so that it stands in the environment, where only this user sees it.
[[noreturn]] void become(const Program& program, std::vector<std::string> words,
                         const std::string& database, const std::string& again) {
  if (!database.empty())
    ::setenv("DATABASE_URL", database.c_str(), 1);
  ::setenv("PAWL_MIGRATE_AS", fmt::format("{} migrate", shell_word(program.name)).c_str(), 1);
  ::setenv("PAWL_MIGRATE_GIVEN", again.c_str(), 1);
  std::vector<char*> argv;
  argv.reserve(words.size() + 1);
  for (auto& word : words)
    argv.push_back(word.data());
  argv.push_back(nullptr);
  std::signal(SIGPIPE, SIG_DFL);
  ::execvp(argv[0], argv.data());
  const auto why = std::generic_category().message(errno);
  throw FatalError(fmt::format(
      "cannot run {}: {}. The package pawl installs it, and a checkout contains it in scripts/. To "
      "use another path, set PAWL_MIGRATE=PATH",
      words[0], why));
}

int migrate(const Program& program, const std::string& command, const ConfigArguments& config,
            Arguments arguments) {
  auto database = arguments.database;
  const auto said = arguments;
  InvocationOptions invocation;
  if (config.file.empty()) {
    if (!config.overrides.empty())
      throw BadCall("--set requires --config (or set PAWL_CONFIG)");
  } else {
    const auto options = config.load_to_relay();
    invocation = options.invocation;
    if (database.empty()) {
      database = options.postgres.url;
      // The script's psql would quote it.
      if (const auto problem = postgres::problem_of(database))
        throw BadCall(fmt::format("postgres.url: {}. {}", problem->what, problem->fix));
      if (const auto password = postgres::password_of(options.postgres.password_command))
        ::setenv("PGPASSWORD", password->c_str(), 1);
    }
    if (arguments.schema.empty())
      arguments.schema = options.postgres.schema;
  }
  become(program, words_of(command, arguments), database, given_words(invocation, said));
}

}  // namespace

void add_migrate(Command& parser, Commands& commands) {
  auto* group = parser.add_subcommand(
      "migrate", "Create or upgrade pawl's tables, or run your own SQL migrations");
  const auto add = [&](const char* name, const char* description) {
    auto* command = group->add_subcommand(name, description);
    const auto arguments = std::make_shared<Arguments>();
    const auto config = add_optional_config_arguments(*command);
    command
        ->add_option("--schema", arguments->schema,
                     "Schema of pawl's tables (default: postgres.schema, or pawl)")
        ->type_name("NAME");
    command->add_json_flag(arguments->json);
    commands.set_action(command, [&commands, name, config, arguments] {
      return migrate(commands.program(), name, *config, *arguments);
    });
    return std::pair{command, arguments};
  };
  const auto add_set = [](Command* command, Arguments& arguments) {
    command
        ->add_option(
            "--database", arguments.database,
            "Direct connection, not a pooler (default: postgres.url, DATABASE_URL, PGDATABASE)")
        ->type_name("URL");
    command
        ->add_option("--dir", arguments.dir,
                     "Folder with your own files NNNN_name.sql; requires --name")
        ->type_name("DIR");
    command
        ->add_option("--name", arguments.name, "Name of the set of files in --dir (default: pawl)")
        ->type_name("NAME");
  };
  {
    const auto [command, arguments] =
        add("up", "Apply every pending file, each in one transaction with its version row");
    add_set(command, *arguments);
    command
        ->add_option("--lock-timeout", arguments->lock_timeout,
                     "Seconds to wait while another run holds the lock (default: 300)")
        ->type_name("S");
    command->exit_status({{"0", "every file is applied"},
                          {"1", "failure; nothing of the failed file is kept"},
                          {"2", "usage or configuration error; nothing was changed"},
                          {"4", "files and database disagree; nothing was changed"},
                          {"5", "another run held the lock until --lock-timeout"},
                          {"6", "programs that must be stopped first are connected"},
                          {"130", "SIGINT; the file in progress was rolled back"},
                          {"143", "SIGTERM; the file in progress was rolled back"}});
  }
  {
    const auto [command, arguments] =
        add("status", "List the files, and which of them are applied");
    add_set(command, *arguments);
    command->add_flag("--exit-code", arguments->exit_code, "Exit with 3 if files are pending");
    command->exit_status({{"0", "success; with --exit-code: no file is pending"},
                          {"1", "failure; the reason is on stderr"},
                          {"2", "usage or configuration error; nothing was changed"},
                          {"3", "attention required (--exit-code): files are pending"},
                          {"4", "with --exit-code: files and database disagree"}});
  }
  {
    const auto [command, arguments] = add("plan", "List the files that migrate up would apply");
    add_set(command, *arguments);
    command->add_flag("--sql", arguments->sql, "Print the SQL, including version rows");
  }
  {
    const auto [command, arguments] = add(
        "grants", "Print the GRANT statements for the role of a consumer (requires no database)");
    command->add_option("--role", arguments->role, "Role that receives the privileges")
        ->type_name("ROLE")
        ->required();
    command->add_flag("--publisher", arguments->publisher,
                      "Only the privilege to call pawl.publish");
    command->add_flag("--relay", arguments->relay,
                      "Only the privileges of pawl relay and pawl outbox");
  }
}

}  // namespace pawl::cli
