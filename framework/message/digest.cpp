#include "message/digest.hpp"

#include <openssl/evp.h>

#include <memory>

#include "message/hexadecimal.hpp"
#include "pawl/errors.hpp"

namespace pawl::message {
namespace {

[[noreturn]] void throw_unavailable() {
  throw FatalError(
      "OpenSSL cannot compute SHA-256, which idempotency keys require. Check its configuration "
      "(openssl.cnf, loaded providers)");
}

struct FreeContext {
  void operator()(EVP_MD_CTX* context) const { EVP_MD_CTX_free(context); }
};

// Fetching the algorithm costs more than hashing a small message does: once for the process. Never
// freed, because OpenSSL's own exit handler may run before a static destructor.
const EVP_MD* sha256_algorithm() {
  static const EVP_MD* const algorithm = EVP_MD_fetch(nullptr, "SHA2-256", nullptr);
  return algorithm;
}

}  // namespace

Sha256 sha256(std::string_view bytes) {
  thread_local const std::unique_ptr<EVP_MD_CTX, FreeContext> context{EVP_MD_CTX_new()};
  const EVP_MD* algorithm = sha256_algorithm();
  Sha256 digest{};
  if (context == nullptr || algorithm == nullptr ||
      EVP_DigestInit_ex2(context.get(), algorithm, nullptr) != 1 ||
      EVP_DigestUpdate(context.get(), bytes.data(), bytes.size()) != 1 ||
      EVP_DigestFinal_ex(context.get(), digest.data(), nullptr) != 1) {
    throw_unavailable();
  }
  return digest;
}

std::string sha256_hex(std::string_view bytes) {
  const auto digest = sha256(bytes);
  return hexadecimal(std::string{digest.begin(), digest.end()});
}

}  // namespace pawl::message
