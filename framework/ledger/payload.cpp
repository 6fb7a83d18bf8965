#include "ledger/payload.hpp"

#include <openssl/evp.h>

#include <nlohmann/json.hpp>
#include <stdexcept>

namespace pawl::ledger {

std::string base64(std::string_view bytes) {
  std::string encoded(4 * ((bytes.size() + 2) / 3), '\0');
  EVP_EncodeBlock(reinterpret_cast<unsigned char*>(encoded.data()),
                  reinterpret_cast<const unsigned char*>(bytes.data()),
                  static_cast<int>(bytes.size()));
  return encoded;
}

std::string from_base64(std::string_view text) {
  if (text.size() % 4 != 0)
    throw std::invalid_argument("not base64: its length is no multiple of 4");
  std::string decoded(text.size() / 4 * 3, '\0');
  const int written = EVP_DecodeBlock(reinterpret_cast<unsigned char*>(decoded.data()),
                                      reinterpret_cast<const unsigned char*>(text.data()),
                                      static_cast<int>(text.size()));
  if (written < 0)
    throw std::invalid_argument("not base64");
  // EVP_DecodeBlock counts the padding as zero bytes.
  const auto padding = text.ends_with("==") ? 2U : text.ends_with('=') ? 1U : 0U;
  decoded.resize(static_cast<std::size_t>(written) - padding);
  return decoded;
}

std::string headers_json(std::span<const Header> headers) {
  auto array = nlohmann::json::array();
  for (const auto& header : headers) {
    array.push_back({{"name", std::string(header.name)},
                     {"value", header.value ? nlohmann::json(base64(*header.value))
                                            : nlohmann::json(nullptr)}});
  }
  return array.dump(-1, ' ', true, nlohmann::json::error_handler_t::replace);
}

std::vector<StoredHeader> parse_headers_json(std::string_view text) {
  std::vector<StoredHeader> headers;
  try {
    for (const auto& entry : nlohmann::json::parse(text)) {
      auto& header = headers.emplace_back();
      header.name = entry.at("name").get<std::string>();
      if (!entry.at("value").is_null())
        header.value = from_base64(entry.at("value").get<std::string>());
    }
  } catch (const nlohmann::json::exception& error) {
    throw std::invalid_argument(std::string("headers are not what pawl stores: ") + error.what());
  }
  return headers;
}

}  // namespace pawl::ledger
