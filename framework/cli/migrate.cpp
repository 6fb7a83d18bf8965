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
    if (fs::exists(root / "migrations/0001_schema.sql", error) &&
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
       {std::pair{"--exit-code", arguments.exit_code}, std::pair{"--sql", arguments.sql},
        std::pair{"--publisher", arguments.publisher}, std::pair{"--relay", arguments.relay}}) {
    if (given)
      words.emplace_back(name);
  }
  return words;
}

/// What leads to the same database and files again, for texts of the script that say a command.
std::string given_words(const InvocationOptions& invocation, const Arguments& arguments) {
  std::vector<std::string> words;
  const auto option = [&](const char* name, const std::string& value) {
    if (!value.empty())
      words.push_back(fmt::format("{} {}", name, shell_word(value)));
  };
  option("--config", invocation.config_file);
  for (const auto& text : invocation.overrides)
    option("--set", text);
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
      throw BadCall("--set changes a configuration: give --config FILE as well");
  } else {
    const auto options = config.load_to_relay();
    invocation = options.invocation;
    if (database.empty()) {
      database = options.postgres.url;
      // The script's psql would quote it.
      if (const auto problem = postgres::problem_of(database))
        throw BadCall(fmt::format("postgres.url: {}; {}", problem->what, problem->fix));
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
      "migrate", "Make or renew pawl's tables, and tables of your own, from plain SQL files");
  const auto add = [&](const char* name, const char* description) {
    auto* command = group->add_subcommand(name, description);
    const auto arguments = std::make_shared<Arguments>();
    const auto config = add_optional_config_arguments(*command);
    command
        ->add_option("--schema", arguments->schema,
                     "Of pawl's tables; else postgres.schema of the configuration, or pawl")
        ->type_name("NAME");
    commands.set_action(command, [&commands, name, config, arguments] {
      return migrate(commands.program(), name, *config, *arguments);
    });
    return std::pair{command, arguments};
  };
  const auto add_set = [](Command* command, Arguments& arguments) {
    command
        ->add_option("--database", arguments.database,
                     "Instead of the configuration's postgres.url. A direct connection, not a "
                     "pooler; without both: DATABASE_URL, PGDATABASE and libpq's other variables")
        ->type_name("URL");
    command
        ->add_option("--dir", arguments.dir,
                     "A folder with files NNNN_name.sql of your own; needs --name")
        ->type_name("DIR");
    command
        ->add_option("--name", arguments.name, "Of the set of files in --dir; pawl's own is pawl")
        ->type_name("NAME");
  };
  {
    const auto [command, arguments] =
        add("up", "Apply every pending file, each with its version row in one transaction");
    add_set(command, *arguments);
    command
        ->add_option("--lock-timeout", arguments->lock_timeout,
                     "To wait for another run to end, in seconds; 300 if not given")
        ->type_name("S");
    command->footer(
        "Exit codes: 0 done; 1 PostgreSQL refused something, and the file left nothing "
        "behind; 2 the command line is wrong; 4 files and database disagree; 5 another "
        "run held the lock; 6 programs are connected that must be stopped first.");
  }
  {
    const auto [command, arguments] = add("status", "The files, and what the database has of them");
    add_set(command, *arguments);
    command->add_flag("--exit-code", arguments->exit_code, "Exit with 3 when some are pending");
  }
  {
    const auto [command, arguments] = add("plan", "What `up` would apply");
    add_set(command, *arguments);
    command->add_flag("--sql", arguments->sql, "The SQL itself, version rows included");
  }
  {
    const auto [command, arguments] =
        add("grants", "Print the GRANTs that a role needs to run a consumer (needs no database)");
    command->add_option("--role", arguments->role, "Who receives the rights")
        ->type_name("ROLE")
        ->required();
    command->add_flag("--publisher", arguments->publisher,
                      "Only to call pawl.publish, for a program of your own");
    command->add_flag("--relay", arguments->relay, "Only what `relay` and `outbox` need");
  }
}

}  // namespace pawl::cli
