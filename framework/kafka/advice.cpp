#include "kafka/advice.hpp"

#include <fmt/format.h>
#include <librdkafka/rdkafka.h>
#include <openssl/x509_vfy.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <regex>

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
    ". The broker requires a client certificate, or rejected the one that it received. Set "
    "\"ssl.certificate.location\" and \"ssl.key.location\" in [kafka.librdkafka], and check the "
    "broker's truststore";

// The first whose words are found counts.
constexpr std::array kAdvice{
    Advice{"kafka.oauth_token_command failed", ""},
    Advice{"Subscribed topic not available",
           ". The topic does not exist. Create it, or fix the topics of the handlers",
           "Unknown topic or partition"},
    Advice{
        "FENCED_INSTANCE_ID",
        ". Another process has joined with the same kafka.group_instance_id. Give each process its "
        "own, or remove the option, and restart this process"},
    Advice{"Group authorization failed", ". Grant this user READ on the group in kafka.group"},
    Advice{"ConsumerGroupHeartbeat fatal error: Broker: API version not supported",
           ". This broker does not support the consumer protocol "
           "(group.coordinator.rebalance.protocols). Set kafka.group_protocol = \"classic\""},
    Advice{
        "invalid_token",
        ". The broker rejects the token of kafka.oauth_token_command. Check its audience and its "
        "expiry"},
    Advice{"UNSUPPORTED_SASL_MECHANISM",
           ". Check \"sasl.mechanism\" in [kafka.librdkafka], and the broker's listener"},
    Advice{"Unsupported SASL mechanism",
           ". Check \"sasl.mechanism\" in [kafka.librdkafka], and the broker's listener"},
    Advice{"mechanism OAUTHBEARER",
           ". Check kafka.oauth_token_command, and the audience and expiry of the token that it "
           "prints"},
    Advice{"SASL authentication error",
           ". Check \"sasl.username\" and \"sasl.password\" in [kafka.librdkafka]"},
    Advice{"Authentication failed",
           ". Check \"sasl.username\" and \"sasl.password\" in [kafka.librdkafka]"},
    Advice{"alert certificate required", kCertificate},
    Advice{"alert bad certificate", kCertificate},
    Advice{"alert handshake failure", kCertificate},
    Advice{"alert certificate expired",
           ". The certificate of this program has expired. Renew \"ssl.certificate.location\" in "
           "[kafka.librdkafka]"},
    Advice{"alert certificate unknown", kCertificate},
    Advice{"alert unknown ca",
           ". The broker does not trust the authority of \"ssl.certificate.location\" in "
           "[kafka.librdkafka]. Check its truststore"},
};

const Advice* find_advice(std::string_view text) {
  const auto* const found = std::ranges::find_if(kAdvice, [text](const Advice& advice) {
    return text.find(advice.words) != std::string_view::npos &&
           text.find(advice.also) != std::string_view::npos;
  });
  return found == kAdvice.end() ? nullptr : found;
}

struct Varying {
  std::regex part;
  const char* stable;
};

/// In this order: the name of the thread is before that of the broker.
const std::array<Varying, 7>& varying() {
  static const std::array<Varying, 7> parts{{
      {std::regex(R"re(\[thrd:[^\]]*\]: )re"), ""},
      // "(after 7ms in state UP, 1 identical error(s) suppressed)"
      {std::regex(R"re( \((after \d+ms|average rtt )([^()]|\([^()]*\))*\))re"), ""},
      {std::regex(R"re(^GroupCoordinator: )re"), ""},
      {std::regex(R"re(^([^ ]*)/(\d+|bootstrap): )re"), "$1: "},
      {std::regex(R"re(\d+/\d+ brokers are down)re"), "all brokers are down"},
      {std::regex(R"re(\d+ request\(s\) timed out)re"), "requests timed out"},
      {std::regex(R"re(Timed out (\d+ [a-z-]+(, )?)+ requests)re"), "requests timed out"},
  }};
  return parts;
}

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
  const auto* const found = find_advice(text);
  return found == nullptr ? "" : std::string(found->look);
}

std::string correction(std::string_view text) {
  struct Other {
    std::string_view words;
    std::string_view fix;
  };
  // The first two are librdkafka's texts for one failed handshake.
  constexpr std::array kOther{Other{"certificate verify failed", "certificate"},
                              Other{"verification callback failed", "certificate"},
                              Other{"kafka.oauth_token_command", "token"}};
  if (const auto* const found = find_advice(text))
    return std::string(found->look.empty() ? found->words : found->look);
  const auto* const other = std::ranges::find_if(
      kOther, [text](const Other& one) { return text.find(one.words) != std::string_view::npos; });
  return other == kOther.end() ? "" : std::string(other->fix);
}

std::string stable_cause(std::string_view text) {
  std::string result(text);
  for (const auto& [part, stable] : varying())
    result = std::regex_replace(result, part, stable);
  return result;
}

std::string explained(std::string_view text) {
  return stable_cause(text) + advice_for(text);
}

std::string certificate_advice(int x509_error) {
  switch (x509_error) {
    case X509_V_ERR_HOSTNAME_MISMATCH:
    case X509_V_ERR_IP_ADDRESS_MISMATCH:
      return ". The broker's certificate does not contain the host in kafka.bootstrap_servers or "
             "in the broker's advertised.listeners";
    case X509_V_ERR_CERT_HAS_EXPIRED:
    case X509_V_ERR_CERT_NOT_YET_VALID:
      return ". Renew the broker's certificate, or fix this machine's clock";
    case X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT:
    case X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN:
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT:
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY:
    case X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE:
    case X509_V_ERR_CERT_SIGNATURE_FAILURE:
      return ". \"ssl.ca.location\" in [kafka.librdkafka] must contain the authority that signed "
             "the broker's certificate";
    default:
      return {};
  }
}

void explain_certificates(rd_kafka_conf_t* conf) {
  rd_kafka_conf_set_ssl_cert_verify_cb(conf, explain);
}

}  // namespace pawl::kafka
