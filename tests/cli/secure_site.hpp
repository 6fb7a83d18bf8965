#pragma once

#include <map>
#include <string>
#include <vector>

#include "certificates.hpp"
#include "site.hpp"

namespace pawl::testing {

/// The fenced block after <!-- tested: NAME --> in one of the pages about security.
std::string security_block(const std::string& name);

/// Each text that is a key in the place of itself; throws where the text has none.
std::string replaced(std::string text, const std::map<std::string, std::string>& replacements);

/// A Kafka and a PostgreSQL that demand authentication of everybody but the tests' own superusers,
/// who come without TLS; and the files that the pages about security name.
class SecureServers {
 public:
  /// Started at the first call, and then there for all tests.
  static SecureServers& shared();

  /// What the documents call /etc/pawl and /run/secrets.
  [[nodiscard]] std::filesystem::path file(const std::string& name) const {
    return folder_.path() / name;
  }

  const test::Authority authority{"test authority"};
  const test::Authority stranger{"another authority"};

 private:
  SecureServers();

  TempDir folder_{"security"};

 public:
  KafkaBroker kafka;
  PostgresServer postgres;
};

/// A Site whose program connects as the pages about security describe.
class SecureSite : public Site {
 public:
  SecureSite();

  /// [kafka] and [kafka.librdkafka], [postgres]; empty: without authentication.
  std::string kafka;
  std::string postgres;
  /// Must not be in anything that the program prints.
  std::vector<std::string> secrets;

  /// `pawl ARGUMENTS... --config FILE`, to its end.
  Outcome run_secured(std::vector<std::string> arguments);
  std::unique_ptr<ChildProcess> start_secured(const std::vector<std::string>& arguments = {});
  /// `pawl relay` beside the test.
  std::unique_ptr<ChildProcess> start_relaying();
  /// Checks that no secret was printed.
  void check_hidden(const std::string& printed) const;
  /// SIGTERM, and that it ends well without a secret in its log.
  void end(ChildProcess& child) const;

 private:
  std::filesystem::path secured_config();
};

/// An executable shell script.
void write_command(const std::filesystem::path& path, const std::string& script);

}  // namespace pawl::testing
