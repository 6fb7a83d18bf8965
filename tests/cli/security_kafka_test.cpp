// Authentication to Kafka as docs/security-kafka.md describes it, on a broker that requires it and
// denies what no ACL permits.
#include <fmt/format.h>

#include <chrono>
#include <cstdlib>
#include <regex>

#include "prelude.hpp"
#include "script_server.hpp"
#include "secure_site.hpp"

namespace {

class KafkaSite : public SecureSite {
 public:
  static SecureServers& servers() { return SecureServers::shared(); }

  /// The block of the document with this broker's listener in it.
  [[nodiscard]] std::string block(const std::string& name, const std::string& listener) const {
    return replaced(security_block(name),
                    {{"/etc/pawl/kafka-ca.pem", servers().file("kafka-ca.pem").string()},
                     {"kafka.example:9093", servers().kafka.bootstrap(listener)},
                     {"group = \"payments\"", "group = \"" + group + "\""}});
  }
  [[nodiscard]] std::string by_password(const std::string& password,
                                        const std::string& listener = "SCRAM") const {
    write_file(servers().file("kafka-password"), password + "\n");
    return replaced(block("kafka-scram.toml", listener),
                    {{"/run/secrets/kafka-password", servers().file("kafka-password").string()}});
  }
  [[nodiscard]] std::string by_certificate(const Authority::Certificate& certificate,
                                           const std::string& listener = "MTLS") const {
    return replaced(block("kafka-mtls.toml", listener),
                    {{"/etc/pawl/payments.pem", certificate.file},
                     {"/etc/pawl/payments.key", certificate.key}});
  }

  /// What the document's commands permit, for this site's topic and group.
  void permit(const std::string& acls) const {
    const std::regex command(
        R"(--allow-principal (\S+) --operation (\S+) --(\S+) (\S+)( --resource-pattern-type prefixed)?)");
    const auto text = security_block(acls);
    int count = 0;
    for (std::sregex_iterator at(text.begin(), text.end(), command), end; at != end;
         ++at, ++count) {
      const auto& match = *at;
      auto name = match[4].str();
      if (name == "payments")
        name = match[3] == "topic" ? topic : group;
      servers().kafka.permit({.principal = match[1],
                              .resource = match[3],
                              .name = name,
                              .prefix = match[5].matched,
                              .operation = match[2]});
    }
    CHECK(count == occurrences(text, "kafka-acls"));
  }

  void check_consumes() {
    const auto check = run_secured({"check"});
    INFO(check.out << check.err);
    CHECK(check.code == 0);
    pay_many(0, "e", 3);
    const auto child = start_secured();
    wait_for_stored(0, 2);
    end(*child);
  }

  /// `check` says why it is not let in, `run` waits and says so too. The cause is a regular
  /// expression.
  void check_refused(const std::string& cause, const std::string& option) {
    const std::regex said(cause);
    const auto child = start_secured();
    const auto check = run_secured({"check"});
    INFO(check.out << check.err);
    CHECK(check.code == 1);
    CHECK(std::regex_search(check.out, said));
    CHECK_THAT(check.out, ContainsSubstring(option));
    child->wait_for_output(option, kDeadline);
    wait_until([&] { return std::regex_search(child->output(), said); }, kDeadline, cause);
    end(*child);
  }
  /// TLS 1.3 has certificate_required for a certificate that is missing, TLS 1.2 bad_certificate or
  /// handshake_failure, and which one Java sends, in 1.3 as well, its update decides: 17.0.15
  /// and 17.0.19 differ.
  void check_certificate_refused() {
    check_refused(
        "alert (certificate required|bad certificate|handshake failure|certificate unknown)",
        "Set \"ssl.certificate.location\" and \"ssl.key.location\"");
  }
};

/// How long tokens are good for. PAWL_TOKEN_SECONDS=120: two minutes, for about ten minutes.
struct TokenTimes {
  int seconds = 6;
  int renewed_after = 2;  ///< so that many renewals take a short time
  int renewals = 4;

  TokenTimes() {
    if (const char* asked = std::getenv("PAWL_TOKEN_SECONDS")) {
      seconds = renewed_after = std::stoi(asked);
      renewals = 6;
    }
  }
  [[nodiscard]] std::chrono::seconds deadline(int tokens) const {
    return kDeadline + tokens * std::chrono::seconds(seconds);
  }
};

/// A token endpoint that knows the client "payments".
class TokenEndpoint {
 public:
  static constexpr const char* kSecret = "endpoint-secret";

  [[nodiscard]] std::string url() const {
    return fmt::format("http://127.0.0.1:{}/oauth2/token", server_.port());
  }
  [[nodiscard]] int granted() const { return occurrences(server_.log(), "GRANTED"); }
  [[nodiscard]] int refused() const { return occurrences(server_.log(), "REFUSED"); }

  /// A token command as in docs/security-kafka.md, with the endpoint's secret in a file of curl's.
  [[nodiscard]] std::string command() const {
    const auto request = folder_.path() / "request";
    write_file(
        request,
        fmt::format("user = \"payments:{}\"\ndata = \"grant_type=client_credentials\"\n", kSecret));
    return fmt::format("exec curl -sS --fail -m 5 -K {} {}", request.string(), url());
  }

 private:
  const TempDir folder_{"tokens"};
  const ScriptServer server_{PAWL_TOKEN_ENDPOINT,
                             {"payments", kSecret, std::to_string(TokenTimes().seconds),
                              std::to_string(TokenTimes().renewed_after)}};
};

}  // namespace

TEST_CASE("init reaches a broker that demands TLS and a password, and writes what that needs") {
  KafkaSite site;
  auto& kafka = KafkaSite::servers().kafka;
  kafka.set_password("payments", "kafka-secret");
  site.permit("acls");
  site.pay(0, "e-1", "a", "7");
  const TempDir folder("init");
  const auto file = (folder.path() / "new.toml").string();
  const Environment environment{{"KAFKA_SASL_USERNAME", "payments"},
                                {"KAFKA_SASL_PASSWORD", "kafka-secret"}};
  const auto made = site.run_bare(
      {"init", "--topic", site.topic, "--group", site.group, "--bootstrap-servers",
       kafka.bootstrap("SCRAM"), "--url", site.url, "-o", file, "--set",
       fmt::format(
           R"(kafka.librdkafka={{ "security.protocol" = "sasl_ssl", "ssl.ca.location" = "{}", )"
           R"("sasl.mechanism" = "SCRAM-SHA-512", "sasl.username" = "payments" }})",
           KafkaSite::servers().file("kafka-ca.pem").string()),
       "--set", "kafka.librdkafka.sasl.password=${KAFKA_SASL_PASSWORD}"},
      environment);
  INFO(made.out << made.err);
  CHECK(made.code == 0);
  CHECK_THAT(read_file(file), ContainsSubstring("\"sasl.password\" = \"${KAFKA_SASL_PASSWORD}\"") &&
                                  !ContainsSubstring("kafka-secret"));
  const auto check = site.run_bare({"check", "--config", file}, environment);
  INFO(check.out << check.err);
  CHECK_THAT(check.out, ContainsSubstring("Kafka           ok    cluster "));
}

TEST_CASE("SCRAM over TLS, with the rights of the document and no others") {
  KafkaSite site;
  auto& kafka = KafkaSite::servers().kafka;
  site.secrets = {"kafka-secret", "wrong-secret"};
  kafka.set_password("payments", "kafka-secret");
  site.kafka = site.by_password("kafka-secret");
  const auto other = kafka.new_topic("other", 1);
  site.more = "[[handler]]\ntopics = [\"" + other + "\"]\n" + site.handler;

  const auto nothing = site.run_secured({"check"});
  INFO(nothing.out << nothing.err);
  CHECK(nothing.code == 1);
  CHECK_THAT(nothing.out, ContainsSubstring("Kafka denies access to topic " + site.topic) &&
                              ContainsSubstring("Kafka denies access to topic " + other));

  // One of the two topics: the other one is named, and holds nothing up.
  site.permit("acls");
  const auto check = site.run_secured({"check"});
  INFO(check.out << check.err);
  CHECK(check.code == 1);
  CHECK_THAT(check.out, ContainsSubstring("Kafka denies access to topic " + other) &&
                            !ContainsSubstring("Kafka denies access to topic " + site.topic));
  site.pay_many(0, "e", 3);
  const auto child = site.start_secured();
  site.wait_for_stored(0, 2);
  child->wait_for_output("Kafka denies access to topic " + other, kDeadline);
  kafka.permit(
      {.principal = "User:payments", .resource = "topic", .name = other, .operation = "Read"});
  KafkaProducer producer(kafka.bootstrap());
  producer.send(other, {.key = "a",
                        .value = R"({"account": "a", "amount": 1})",
                        .headers = {{"event-id", "o"}},
                        .partition = 0});
  producer.flush();
  site.wait_for_sql("SELECT count(*) FROM ledger WHERE event_id = 'o'", "1");
  site.end(*child);

  site.kafka = site.by_password("wrong-secret");
  site.check_refused("Authentication failed", "Check \"sasl.username\" and \"sasl.password\"");
}

TEST_CASE("a group that may not be joined is waited for, with the right that is missing") {
  KafkaSite site;
  auto& kafka = KafkaSite::servers().kafka;
  kafka.set_password("payments", "kafka-secret");
  site.kafka = site.by_password("kafka-secret");
  kafka.permit(
      {.principal = "User:payments", .resource = "topic", .name = site.topic, .operation = "Read"});
  const auto child = site.start_secured();
  child->wait_for_output("Group authorization failed", kDeadline);
  child->wait_for_output("READ on the group in kafka.group", kDeadline);
  site.end(*child);
}

TEST_CASE("mutual TLS") {
  KafkaSite site;
  const auto& servers = KafkaSite::servers();
  site.permit("acls");
  const auto own = servers.authority.sign("payments", "DNS:payments");
  site.kafka = site.by_certificate(own);
  site.check_consumes();

  site.kafka = site.by_certificate(servers.stranger.sign("payments", "DNS:payments"));
  site.check_certificate_refused();
  const auto block = site.by_certificate(own);
  site.kafka = block.substr(0, block.find("\"ssl.certificate.location\""));
  site.check_certificate_refused();
}

TEST_CASE("a broker that is not the one is not connected to") {
  KafkaSite site;
  const auto& servers = KafkaSite::servers();
  const auto own = servers.authority.sign("payments", "DNS:payments");
  SECTION("an authority that is not known") {
    site.kafka = replaced(site.by_certificate(own),
                          {{servers.file("kafka-ca.pem").string(), servers.stranger.file()}});
    site.check_refused("unable to get local issuer certificate", "\"ssl.ca.location\"");
  }
  SECTION("another host") {
    site.kafka = site.by_certificate(own, "ELSEWHERE");
    site.check_refused("IP address mismatch", "kafka.bootstrap_servers");
  }
  SECTION("a certificate that has ended") {
    site.kafka = site.by_certificate(own, "EXPIRED");
    site.check_refused("certificate has expired", "Renew the broker's certificate");
  }
}

TEST_CASE("OAuth tokens are renewed on open connections, without a rebalance") {
  KafkaSite site;
  auto& kafka = KafkaSite::servers().kafka;
  const auto command = KafkaSite::servers().file("kafka-token");
  const TokenEndpoint endpoint;
  write_command(command, endpoint.command());
  // How each of its tokens begins.
  site.secrets = {"eyJhbGciOiJub25lIn0", TokenEndpoint::kSecret};
  site.permit("acls");
  site.permit("outbox-acls");
  kafka.create_topic("booked", 1);
  site.kafka = replaced(site.block("kafka-oauthbearer.toml", "OAUTH"),
                        {{"/usr/local/bin/kafka-token", command.string()}});
  site.handler = "sql = [\"SELECT pawl.publish('booked', {/account}, {value})\"]\n";
  site.more = "[outbox]\nrelay = \"off\"\n";
  const auto check = site.run_secured({"check"});
  INFO(check.out << check.err);
  CHECK(check.code == 0);
  site.pay_many(0, "e", 3);
  const auto child = site.start_secured();
  site.wait_for_stored(0, 2);
  // By then the first token has ended long ago.
  const auto before = endpoint.granted();
  const TokenTimes times;
  wait_until([&] { return endpoint.granted() >= before + times.renewals; },
             times.deadline(times.renewals), "renewals");
  site.pay_many(0, "renewed", 3);
  site.wait_for_stored(0, 5);

  write_command(command, "echo eyJhbGciOiJub25lIn0; echo eyJhbGciOiJub25lIn0 >&2; exit 7");
  child->wait_for_output("kafka.oauth_token_command failed: it exited with code 7",
                         times.deadline(1));
  write_command(command, endpoint.command());
  const auto failed = endpoint.granted();
  wait_until([&] { return endpoint.granted() > failed; }, times.deadline(1), "another try");
  site.pay_many(0, "again", 3);
  site.wait_for_stored(0, 8);
  INFO(child->output());
  CHECK(occurrences(child->output(), " partition_assigned ") == 1);
  CHECK(occurrences(child->output(), "partition_revoked") == 0);
  site.end(*child);

  // Producers, and the questions of commands.
  const auto relay = site.run_secured({"relay", "--drain"});
  INFO(relay.out << relay.err);
  CHECK(relay.code == 0);
  CHECK(read_topic(kafka.bootstrap(), "booked").size() == 9);
  const auto status = site.run_secured({"status"});
  INFO(status.out << status.err);
  CHECK(status.code == 0);
}

TEST_CASE(
    "librdkafka asks a token endpoint by itself, and is told by its option where it refuses") {
  KafkaSite site;
  const TokenEndpoint endpoint;
  site.secrets = {"eyJhbGciOiJub25lIn0", TokenEndpoint::kSecret, "wrong-secret"};
  site.permit("acls");
  const auto with = [&](const std::string& secret) {
    write_file(KafkaSite::servers().file("client-secret"), secret);
    return replaced(
        site.block("kafka-oidc.toml", "OAUTH"),
        {{"https://login.example/oauth2/token", endpoint.url()},
         {"/run/secrets/kafka-client", KafkaSite::servers().file("client-secret").string()}});
  };
  site.kafka = with(TokenEndpoint::kSecret);
  site.check_consumes();
  CHECK(endpoint.granted() > 0);
  site.kafka = with("wrong-secret");
  const auto check = site.run_secured({"check"});
  INFO(check.out << check.err);
  CHECK(check.code == 1);
  CHECK_THAT(check.out, ContainsSubstring("401"));
  CHECK(endpoint.refused() > 0);
}

TEST_CASE("a token command that fails, or a token that the broker refuses, is told by its option") {
  KafkaSite site;
  const auto command = KafkaSite::servers().file("bad-token");
  site.secrets = {"hunter2"};
  site.kafka = replaced(site.block("kafka-oauthbearer.toml", "OAUTH"),
                        {{"/usr/local/bin/kafka-token", command.string()}});
  write_command(command, "echo hunter2; exit 7");
  site.check_refused("kafka.oauth_token_command failed: it exited with code 7",
                     "Run it as the user of this process");
  write_command(command, R"(echo '{"access_token": "hunter2", "expires_in": 60}')");
  site.check_refused("librdkafka", "the token of kafka.oauth_token_command");

  // A relay waits as well, and says so of its own clients.
  const auto relay = site.start_relaying();
  relay->wait_for_output("the token of kafka.oauth_token_command", kDeadline);
  site.end(*relay);

  // Nobody waits for one that hangs.
  const auto started = KafkaSite::servers().file("token-started");
  write_command(command, "echo $$ >" + started.string() + "; exec sleep 600");
  const auto child = site.start_secured();
  wait_until([&] { return read_file(started).ends_with('\n'); }, kDeadline, "the command to run");
  site.end(*child);
}
