#include "secure_site.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <csignal>
#include <filesystem>
#include <pqxx/pqxx>
#include <stdexcept>

#include "prelude.hpp"

namespace pawl::testing {

namespace {

std::string concatenated(const Authority::Certificate& certificate) {
  return read_file(certificate.key) + read_file(certificate.file);
}

KafkaOptions kafka_options(const SecureServers& servers) {
  const auto signed_by = [&](const std::string& name, const std::string& names, int days) {
    const auto path = servers.file("broker-" + name + ".pem");
    write_file(path, concatenated(servers.authority.sign(name, names, days)));
    return path.string();
  };
  const std::string here = "DNS:localhost,IP:127.0.0.1";
  const std::string security = "org.apache.kafka.common.security.";
  return {
      .settings = {"ssl.keystore.type=PEM", "ssl.truststore.type=PEM",
                   "ssl.keystore.location=" + signed_by("broker", here, 2),
                   "ssl.truststore.location=" + servers.authority.file(),
                   "listener.name.expired.ssl.keystore.location=" + signed_by("ended", here, -1),
                   "listener.name.elsewhere.ssl.keystore.location=" +
                       signed_by("elsewhere", "DNS:elsewhere.example", 2),
                   "listener.name.scram.sasl.enabled.mechanisms=SCRAM-SHA-512",
                   "listener.name.scram.scram-sha-512.sasl.jaas.config=" + security +
                       "scram.ScramLoginModule required;",
                   "listener.name.mtls.ssl.client.auth=required",
                   "listener.name.mtls.ssl.principal.mapping.rules=RULE:^CN=(.*?)$/$1/",
                   "listener.name.oauth.sasl.enabled.mechanisms=OAUTHBEARER",
                   "listener.name.oauth.oauthbearer.sasl.jaas.config=" + security +
                       "oauthbearer.OAuthBearerLoginModule required;",
                   "listener.name.oauth.oauthbearer.sasl.server.callback.handler.class=" +
                       security +
                       "oauthbearer.internals.unsecured."
                       "OAuthBearerUnsecuredValidatorCallbackHandler",
                   // A connection must prove itself again after this time (KIP-368).
                   "listener.name.oauth.oauthbearer.connections.max.reauth.ms=2000",
                   "authorizer.class.name="
                   "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
                   "super.users=User:ANONYMOUS"},
      .listeners = {{"SCRAM", "SASL_SSL"},
                    {"MTLS", "SSL"},
                    {"OAUTH", "SASL_SSL"},
                    {"EXPIRED", "SSL"},
                    {"ELSEWHERE", "SSL"}}};
}

PostgresOptions postgres_options(const SecureServers& servers) {
  const auto hba = servers.file("pg_hba.conf");
  write_file(hba,
             "local   all all       trust\n"
             "host    all postgres  127.0.0.1/32 trust\n"
             "hostssl all payments  127.0.0.1/32 scram-sha-256\n"
             "hostssl all certified 127.0.0.1/32 cert\n");
  // Before PostgreSQL 14 passwords are kept for MD5, unless told.
  PostgresOptions options{
      .settings = {"password_encryption=scram-sha-256", "ssl=on", "ssl_cert_file=server.pem",
                   "ssl_key_file=server.key", "ssl_ca_file=ca.pem"},
      .files = {hba, servers.authority.file()}};
  for (const auto& certificate : {servers.authority.sign("server", "DNS:localhost,IP:127.0.0.1"),
                                  servers.authority.sign("ended", "DNS:localhost,IP:127.0.0.1", -1),
                                  servers.authority.sign("elsewhere", "DNS:elsewhere.example")}) {
    options.files.emplace_back(certificate.file);
    options.files.emplace_back(certificate.key);
  }
  return options;
}

}  // namespace

SecureServers& SecureServers::shared() {
  static SecureServers servers;
  return servers;
}

SecureServers::SecureServers() : kafka(kafka_options(*this)), postgres(postgres_options(*this)) {
  std::filesystem::copy(authority.file(), file("kafka-ca.pem"));
  std::filesystem::copy(authority.file(), file("postgres-ca.pem"));
  pqxx::connection connection(postgres.url());
  pqxx::nontransaction work(connection);
  work.exec("CREATE ROLE payments LOGIN");
  work.exec("CREATE ROLE certified LOGIN");
}

SecureSite::SecureSite() : Site(SecureServers::shared().kafka, SecureServers::shared().postgres) {}

std::string security_block(const std::string& name) {
  for (const char* page : {"security-postgresql.md", "security-kafka.md"}) {
    const auto document = read_file(scripts_folder().parent_path() / "docs" / page);
    const auto mark = document.find("<!-- tested: " + name + " -->\n```");
    if (mark == std::string::npos)
      continue;
    const auto fence = document.find("```", mark);
    const auto start = document.find('\n', fence) + 1;
    return document.substr(start, document.find("```", start) - start);
  }
  throw std::runtime_error("docs/security-postgresql.md and docs/security-kafka.md have no block " +
                           name);
}

std::string replaced(std::string text, const std::map<std::string, std::string>& replacements) {
  for (const auto& [from, to] : replacements) {
    auto at = text.find(from);
    if (at == std::string::npos)
      throw std::runtime_error("there is no " + from + " in " + text);
    for (; at != std::string::npos; at = text.find(from, at + to.size()))
      text.replace(at, from.size(), to);
  }
  return text;
}

void write_command(const std::filesystem::path& path, const std::string& script) {
  // A program that is open for writing cannot be run, and another thread may be about to.
  const auto fresh = path.string() + ".new";
  write_file(fresh, "#!/bin/sh\n" + script + "\n");
  std::filesystem::permissions(fresh, std::filesystem::perms::owner_all);
  std::filesystem::rename(fresh, path);
}

std::filesystem::path SecureSite::secured_config() {
  const auto path = new_file("secured.toml");
  const auto open_kafka =
      "[kafka]\nbootstrap_servers = \"" + bootstrap + "\"\ngroup = \"" + group + "\"\n";
  write_file(path, (kafka.empty() ? open_kafka : kafka) + "\n" +
                       (postgres.empty() ? "[postgres]\nurl = \"" + url + "\"\n" : postgres) +
                       "\n[idempotency]\nkey = \"{header:event-id}\"\n\n[[handler]]\ntopics = [\"" +
                       topic + "\"]\n" + handler + more);
  return path;
}

void SecureSite::check_hidden(const std::string& printed) const {
  for (const auto& secret : secrets)
    CHECK_THAT(printed, !Catch::Matchers::ContainsSubstring(secret));
}

Outcome SecureSite::run_secured(std::vector<std::string> arguments) {
  arguments.insert(arguments.end(), {"--config", secured_config().string()});
  auto outcome = run_bare(arguments);
  check_hidden(outcome.out + outcome.err);
  return outcome;
}

std::unique_ptr<ChildProcess> SecureSite::start_secured(const std::vector<std::string>& arguments) {
  std::vector<std::string> all{"run", "--config", secured_config().string()};
  all.insert(all.end(), arguments.begin(), arguments.end());
  return std::make_unique<ChildProcess>(PAWL_PROGRAM, all, ChildOptions{.output = new_file("log")});
}

std::unique_ptr<ChildProcess> SecureSite::start_relaying() {
  return std::make_unique<ChildProcess>(
      PAWL_PROGRAM, std::vector<std::string>{"relay", "--config", secured_config().string()},
      ChildOptions{.output = new_file("log")});
}

void SecureSite::end(ChildProcess& child) const {
  child.kill(SIGTERM);
  CHECK(child.wait(kDeadline) == ExitStatus{.code = 0, .signal = {}});
  check_hidden(child.output());
}

}  // namespace pawl::testing
