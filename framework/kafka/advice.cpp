#include "kafka/advice.hpp"

#include <fmt/format.h>
#include <openssl/x509_vfy.h>

#include <algorithm>
#include <array>
#include <cstdint>

namespace pawl::kafka {
namespace {

struct Advice {
  std::string_view words;
  std::string_view look;
  std::string_view also = {};  ///< words that must be there as well
};

// For a client certificate that is missing or rejected. The alert that a broker sends depends on
// the versions of TLS and of Java, so all of these alerts get the same advice.
constexpr std::string_view kCertificate =
    "; the broker requires a client certificate, or rejected the one that it received: set "
    "\"ssl.certificate.location\" and \"ssl.key.location\" below [kafka.librdkafka], and check the "
    "broker's truststore";

// The first whose words are found counts.
constexpr std::array kAdvice{
    Advice{"kafka.oauth_token_command failed", ""},
    Advice{"Subscribed topic not available",
           "; it does not exist in Kafka: create it, or correct the handlers' topics",
           "Unknown topic or partition"},
    Advice{
        "FENCED_INSTANCE_ID",
        "; another process has joined with the same kafka.group_instance_id: give each process one "
        "of its own, or take it out of the configuration, and start this one again"},
    Advice{"Group authorization failed",
           "; grant this user READ on the group that kafka.group names"},
    Advice{"ConsumerGroupHeartbeat fatal error: Broker: API version not supported",
           "; this broker does not share out partitions itself (group.coordinator.rebalance."
           "protocols): write kafka.group_protocol = \"classic\""},
    Advice{"invalid_token",
           "; the broker does not take the token of kafka.oauth_token_command: look at who it is "
           "for, and whether it has ended"},
    Advice{"UNSUPPORTED_SASL_MECHANISM",
           "; look at \"sasl.mechanism\" below [kafka.librdkafka], and at the broker's listener"},
    Advice{"Unsupported SASL mechanism",
           "; look at \"sasl.mechanism\" below [kafka.librdkafka], and at the broker's listener"},
    Advice{"mechanism OAUTHBEARER",
           "; look at kafka.oauth_token_command and the token that it prints: who it is for, and "
           "whether it has ended"},
    Advice{"SASL authentication error",
           "; look at \"sasl.username\" and \"sasl.password\" below [kafka.librdkafka]"},
    Advice{"Authentication failed",
           "; look at \"sasl.username\" and \"sasl.password\" below [kafka.librdkafka]"},
    Advice{"alert certificate required", kCertificate},
    Advice{"alert bad certificate", kCertificate},
    Advice{"alert handshake failure", kCertificate},
    Advice{"alert certificate expired",
           "; this program's certificate has ended: renew \"ssl.certificate.location\" of "
           "[kafka.librdkafka]"},
    Advice{"alert certificate unknown", kCertificate},
    Advice{"alert unknown ca",
           "; the broker does not know the authority of \"ssl.certificate.location\" below "
           "[kafka.librdkafka]: look at its truststore"},
};

int explain(rd_kafka_t* /*client*/, const char* /*broker*/, std::int32_t /*id*/, int* x509_error,
            int /*depth*/, const char* /*certificate*/, std::size_t /*size*/, char* text,
            std::size_t text_size, void* /*opaque*/) {
  if (*x509_error == X509_V_OK)
    return 1;
  const auto why = X509_verify_cert_error_string(*x509_error) + certificate_advice(*x509_error);
  const auto length = std::min(why.size(), text_size - 1);
  std::copy_n(why.begin(), length, text);
  text[length] = '\0';
  return 0;
}

}  // namespace

std::string advice_for(std::string_view text) {
  const auto found = std::find_if(kAdvice.begin(), kAdvice.end(), [text](const Advice& advice) {
    return text.find(advice.words) != std::string_view::npos &&
           text.find(advice.also) != std::string_view::npos;
  });
  return found == kAdvice.end() ? "" : std::string(found->look);
}

std::string certificate_advice(int x509_error) {
  switch (x509_error) {
    case X509_V_ERR_HOSTNAME_MISMATCH:
    case X509_V_ERR_IP_ADDRESS_MISMATCH:
      return "; the broker's certificate is for another host than kafka.bootstrap_servers, or its "
             "own advertised.listeners, says";
    case X509_V_ERR_CERT_HAS_EXPIRED:
    case X509_V_ERR_CERT_NOT_YET_VALID:
      return "; renew the broker's certificate, or set this machine's clock";
    case X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT:
    case X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN:
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT:
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY:
    case X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE:
    case X509_V_ERR_CERT_SIGNATURE_FAILURE:
      return "; the authority that signed the broker's certificate must stand in "
             "\"ssl.ca.location\" of [kafka.librdkafka]";
    default:
      return {};
  }
}

void explain_certificates(rd_kafka_conf_t* conf) {
  rd_kafka_conf_set_ssl_cert_verify_cb(conf, explain);
}

}  // namespace pawl::kafka
