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
