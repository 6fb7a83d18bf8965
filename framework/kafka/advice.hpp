#pragma once

#include <string>
#include <string_view>

/// librdkafka's rd_kafka_conf_t. Modules above this one include this header.
struct rd_kafka_conf_s;

namespace pawl::kafka {

/// What to look at when a broker refuses us, or we it, by librdkafka's words: "; look at ...", the
/// options with their names. Empty: the words say enough.
[[nodiscard]] std::string advice_for(std::string_view text);

/// What an operator must fix before Kafka can be used, from the text of an error. Equal for errors
/// with the same fix. Empty: Kafka may respond again without that.
[[nodiscard]] std::string correction(std::string_view text);

/// librdkafka's text without the parts that differ each time although the cause is the same: the
/// name of its thread, the duration of a state, numbers of brokers and requests, and which of its
/// names of a broker it used ("[thrd:kafka:9092/bootstrap]: kafka:9092/bootstrap: Disconnected
/// (after 7ms in state UP)").
[[nodiscard]] std::string stable_cause(std::string_view text);

/// The stable cause with its advice. All texts of librdkafka pass here before anybody reads them.
[[nodiscard]] std::string explained(std::string_view text);

/// The same of a broker's certificate that OpenSSL did not accept, by its X509_V_ERR_...
[[nodiscard]] std::string certificate_advice(int x509_error);

/// Makes librdkafka say why a broker's certificate is refused: by itself it knows only that it is
/// (2.14.2). Which ones are, this does not change.
void explain_certificates(rd_kafka_conf_s* conf);

}  // namespace pawl::kafka
