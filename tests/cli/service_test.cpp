// apps/service: a program with a main of its own, which loads its configuration by
// pawl::load_config.
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <csignal>

#include "site.hpp"

using namespace pawl::testing;
using Catch::Matchers::ContainsSubstring;

namespace {

/// A service that must end by itself.
Outcome invoke(const std::vector<std::string>& arguments) {
  const TempDir folder("service");
  const auto out = folder.path() / "out";
  const auto err = folder.path() / "err";
  ChildProcess child(PAWL_SERVICE, arguments,
                     {.environment = {}, .output = out, .errors = err, .working_directory = {}});
  const auto status = child.wait(kDeadline);
  return {status.code.value_or(-1), read_file(out), read_file(err)};
}

}  // namespace

TEST_CASE("a program with a main of its own loads its TOML, consumes, and stops when it is asked") {
  Site site;
  site.handler = "name = \"payment\"\n";
  site.pay_many(0, "pay-", 25);
  const TempDir folder("service");
  ChildProcess service(PAWL_SERVICE, {site.config().string(), "consumer.workers=1"},
                       {.environment = {},
                        .output = folder.path() / "out",
                        .errors = folder.path() / "err",
                        .working_directory = {}});
  site.wait_for_stored(0, 24);
  service.kill(SIGTERM);
  CHECK(service.wait(kDeadline).code == 0);
  CHECK(site.sql("SELECT count(*) FROM ledger") == "25");
  CHECK(site.sql("SELECT entries FROM accounts WHERE id = 'a'") == "25");
}

TEST_CASE(
    "pawl::load_config tells all that is wrong, librdkafka's properties too, with its place") {
  Site site;
  site.handler = "name = \"payment\"\n";
  site.more = "[kafka.librdkafka]\n\"no.such\" = \"1\"\n[log]\nlevel = \"loud\"\n";
  const auto config = site.config().string();
  const auto wrong = invoke({config, "consumer.workers=0"});
  CHECK(wrong.code == 2);
  CHECK_THAT(wrong.err, ContainsSubstring(config + ":") &&
                            ContainsSubstring("kafka.librdkafka.no.such") &&
                            ContainsSubstring("log.level = \"loud\"") &&
                            ContainsSubstring("--set consumer.workers=0: "));
  const auto missing = invoke({"no/such/file.toml"});
  CHECK(missing.code == 2);
  CHECK_THAT(missing.err, ContainsSubstring("no/such/file.toml"));
  CHECK(invoke({}).code == 2);
}

TEST_CASE("a handler that the program has not is told with its place") {
  Site site;
  site.handler = "name = \"refund\"\n";
  const auto config = site.config().string();
  const auto unknown = invoke({config});
  CHECK(unknown.code == 2);
  CHECK_THAT(unknown.err, ContainsSubstring(config + ":") && ContainsSubstring("\"refund\"") &&
                              ContainsSubstring("Registered handlers: payment"));
}
