#include "kafka/advice.hpp"

#include <openssl/x509_vfy.h>

#include "prelude.hpp"

using namespace pawl::kafka;

TEST_CASE("librdkafka's words of a refusal are completed by the property to look at") {
  struct Row {
    std::string text;
    std::string names;  // empty: there is nothing to add
  };
  const auto row = GENERATE(values<Row>({
      {"SASL authentication error: Authentication failed during authentication due to invalid "
       "credentials with SASL mechanism SCRAM-SHA-512",
       "\"sasl.password\""},
      {"JoinGroup failed: Broker: Group authorization failed", "READ on the group"},
      {"ConsumerGroupHeartbeat fatal error: Broker: API version not supported",
       "kafka.group_protocol = \"classic\""},
      {"SASL authentication error: {\"status\":\"invalid_token\"}", "kafka.oauth_token_command"},
      {"SASL OAUTHBEARER mechanism handshake failed: Broker: Unsupported SASL mechanism",
       "\"sasl.mechanism\""},
      {"Failed to acquire SASL OAUTHBEARER token: kafka.oauth_token_command failed: it exited with "
       "code 7",
       ""},
      {"SSL routines::tlsv13 alert certificate required", "\"ssl.certificate.location\""},
      {"SSL routines::sslv3 alert certificate expired", "\"ssl.certificate.location\""},
      {"SSL routines::tlsv1 alert unknown ca", "truststore"},
      {"Subscribed topic not available: shipment: Broker: Unknown topic or partition",
       "Create it, or fix the topics of the handlers"},
      {"Subscribed topic not available: shipment: Broker: Topic authorization failed", ""},
      {"Static consumer fenced by other consumer with same group.instance.id "
       "(FENCED_INSTANCE_ID)",
       "kafka.group_instance_id"},
      {"Connect to ipv4#127.0.0.1:9 failed: Connection refused", ""},
  }));
  INFO(row.text);
  CHECK(advice_for(row.text).empty() == row.names.empty());
  CHECK_THAT(advice_for(row.text), ContainsSubstring(row.names));
  CHECK(explained(row.text) == row.text + advice_for(row.text));
}

TEST_CASE("texts of librdkafka with the same cause are the same") {
  struct Row {
    std::string text;
    std::string stable;
  };
  const auto row = GENERATE(values<Row>({
      {"kafka:9092/1: Connect to ipv4#10.0.0.1:9092 failed: Connection refused (after 0ms in state "
       "CONNECT)",
       "kafka:9092: Connect to ipv4#10.0.0.1:9092 failed: Connection refused"},
      {"kafka:9092/bootstrap: Connect to ipv4#10.0.0.1:9092 failed: Connection refused (after 3ms "
       "in state CONNECT, 1 identical error(s) suppressed)",
       "kafka:9092: Connect to ipv4#10.0.0.1:9092 failed: Connection refused"},
      {"[thrd:kafka:9092/bootstrap]: kafka:9092/bootstrap: Disconnected (after 7ms in state UP)",
       "kafka:9092: Disconnected"},
      {"GroupCoordinator: kafka:9092/1: Disconnected (after 7ms in state UP)",
       "kafka:9092: Disconnected"},
      {"[thrd:GroupCoordinator]: GroupCoordinator: kafka:9092: Disconnected (after 7ms in state "
       "UP); look at it",
       "kafka:9092: Disconnected; look at it"},
      {"sasl_ssl://kafka:9092/12: SSL handshake failed (after 2ms in state SSL_HANDSHAKE",
       "sasl_ssl://kafka:9092: SSL handshake failed (after 2ms in state SSL_HANDSHAKE"},
      {"3/3 brokers are down", "all brokers are down"},
      {"12/12 brokers are down", "all brokers are down"},
      {"kafka:9092/1: 2 request(s) timed out: disconnect (average rtt 0.412ms) (after 61004ms in "
       "state UP)",
       "kafka:9092: requests timed out: disconnect"},
      {"[thrd:kafka:9092/1]: kafka:9092/1: Timed out 1 in-flight, 0 retry-queued, 0 out-queue, 0 "
       "partially-sent requests",
       "kafka:9092: requests timed out"},
      {"kafka:9092/1: Timed out FetchRequest in flight (after 60023ms, timeout #0)",
       "kafka:9092: Timed out FetchRequest in flight"},
      {"Subscribed topic not available: a/b: Broker: Unknown topic or partition",
       "Subscribed topic not available: a/b: Broker: Unknown topic or partition"},
      {"", ""},
  }));
  CHECK(stable_cause(row.text) == row.stable);
  CHECK_THAT(explained(row.text), StartsWith(row.stable));
}

TEST_CASE("errors that an operator must fix have a correction, and an outage has none") {
  CHECK(correction("kafka:9092: Connect to ipv4#10.0.0.1:9092 failed: Connection refused").empty());
  CHECK(correction("all brokers are down").empty());
  const auto login = correction("SASL authentication error: Authentication failed");
  CHECK_FALSE(login.empty());
  CHECK(correction(explained(
            "b:9092/1: SASL authentication error: no (after 3ms in state AUTH)")) == login);
  const auto certificate = correction("SSL handshake failed: certificate verify failed");
  CHECK_FALSE(certificate.empty());
  CHECK(certificate != login);
  CHECK(correction("verification callback failed: unable to get local issuer certificate") ==
        certificate);
  CHECK_FALSE(correction("kafka.oauth_token_command failed: it exited with code 7").empty());
  CHECK_FALSE(correction("librdkafka rejects the token of kafka.oauth_token_command").empty());
}

TEST_CASE("a missing certificate gets the same advice, whichever alert tells of it") {
  const auto advice = advice_for("ssl/tls alert certificate required: SSL alert number 116");
  CHECK_THAT(advice, ContainsSubstring("\"ssl.certificate.location\"") &&
                         ContainsSubstring("\"ssl.key.location\"") &&
                         ContainsSubstring("truststore"));
  CHECK(advice_for("sslv3 alert bad certificate: SSL alert number 42") == advice);
  CHECK(advice_for("sslv3 alert handshake failure: SSL alert number 40") == advice);
  CHECK(advice_for("sslv3 alert certificate unknown: SSL alert number 46") == advice);
}

TEST_CASE("a broker's certificate that is refused is told by what to change") {
  CHECK_THAT(certificate_advice(X509_V_ERR_HOSTNAME_MISMATCH),
             ContainsSubstring("kafka.bootstrap_servers"));
  CHECK_THAT(certificate_advice(X509_V_ERR_CERT_HAS_EXPIRED), ContainsSubstring("Renew"));
  CHECK_THAT(certificate_advice(X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN),
             ContainsSubstring("\"ssl.ca.location\""));
  CHECK(certificate_advice(X509_V_ERR_OUT_OF_MEM).empty());
}
