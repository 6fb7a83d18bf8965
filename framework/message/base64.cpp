#include "message/base64.hpp"

#include <openssl/evp.h>

#include <stdexcept>

namespace pawl::message {

std::string base64(std::string_view bytes) {
  std::string encoded(4 * ((bytes.size() + 2) / 3), '\0');
  EVP_EncodeBlock(reinterpret_cast<unsigned char*>(encoded.data()),
                  reinterpret_cast<const unsigned char*>(bytes.data()),
                  static_cast<int>(bytes.size()));
  return encoded;
}

std::string from_base64(std::string_view text) {
  if (text.size() % 4 != 0)
    throw std::invalid_argument("not base64: the length is not a multiple of 4");
  std::string decoded(text.size() / 4 * 3, '\0');
  const int written = EVP_DecodeBlock(reinterpret_cast<unsigned char*>(decoded.data()),
                                      reinterpret_cast<const unsigned char*>(text.data()),
                                      static_cast<int>(text.size()));
  if (written < 0)
    throw std::invalid_argument("not base64");
  // EVP_DecodeBlock counts the padding as zero bytes.
  const auto padding = text.ends_with("==") ? 2U : text.ends_with('=') ? 1U : 0U;
  decoded.resize(static_cast<std::size_t>(written) - padding);
  // It also skips white space, and takes padding in any place for zero bits.
  if (base64(decoded) != text)
    throw std::invalid_argument("not base64");
  return decoded;
}

}  // namespace pawl::message
