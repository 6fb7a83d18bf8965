#pragma once

#include <librdkafka/rdkafka.h>

#include <string>
#include <string_view>

namespace pawl::kafka {

/// What to look at when a broker refuses us, or we it, by librdkafka's words: "; look at ...", the
/// options with their names. Empty: the words say enough.
[[nodiscard]] std::string advice_for(std::string_view text);

/// The text with its advice.
[[nodiscard]] inline std::string explained(std::string text) {
  return text += advice_for(text);
}

/// The same of a broker's certificate that OpenSSL did not accept, by its X509_V_ERR_...
[[nodiscard]] std::string certificate_advice(int x509_error);

/// Makes librdkafka say why a broker's certificate is refused: by itself it knows only that it is
/// (2.14.2). Which ones are, this does not change.
void explain_certificates(rd_kafka_conf_t* conf);

}  // namespace pawl::kafka
