#include "cli/version.hpp"

#include <fmt/format.h>
#include <libpq-fe.h>

#include <iostream>
#include <pqxx/version>

#include "cli/commands.hpp"
#include "console/json.hpp"
#include "kafka/client.hpp"
#include "ledger/consumers.hpp"
#include "ops/http_server.hpp"
#include "redis/transport.hpp"

namespace pawl::cli {
namespace {

/// PostgreSQL manual, 34.2, "PQlibVersion": 150013 is 15.13.
std::string libpq_version() {
  const int number = PQlibVersion();
  return fmt::format("{}.{}", number / 10000, number % 10000);
}

int print_version(const Program& program, bool json) {
  const auto redis_version = redis::library_version();
  if (json) {
    Json root;
    root["program"] = program.name;
    root["pawl"] = pawl_version();
    root["libpqxx"] = PQXX_VERSION;
    root["libpq"] = libpq_version();
    root["librdkafka"] = kafka::library_version();
    root["httplib"] = ops::http_library_version();
    root["hiredis"] = or_null(redis_version);
    root["oldest_schema_version"] = ledger::kOldestSchema;
    root["newest_schema_version"] = ledger::kNewestSchema;
    std::cout << indented(root) << '\n';
    return kDone;
  }
  std::cout << fmt::format(
      "{} (pawl {})\n"
      "libpqxx    {}\n"
      "libpq      {}\n"
      "librdkafka {}\n"
      "httplib    {}\n"
      "hiredis    {}\n"
      "schema     versions {} to {} of pawl's tables\n",
      program.name, pawl_version(), PQXX_VERSION, libpq_version(), kafka::library_version(),
      ops::http_library_version(), redis_version.empty() ? "none" : redis_version,
      ledger::kOldestSchema, ledger::kNewestSchema);
  return kDone;
}

}  // namespace

std::string pawl_version() {
  return PAWL_VERSION;
}

void add_version(Command& parser, Commands& commands) {
  auto* command = parser.add_subcommand("version", "Show the versions of pawl and its libraries");
  const auto json = std::make_shared<bool>(false);
  command->add_json_flag(*json);
  commands.set_action(command,
                      [&commands, json] { return print_version(commands.program(), *json); });
}

}  // namespace pawl::cli
