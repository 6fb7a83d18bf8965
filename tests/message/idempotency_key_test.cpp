#include "message/idempotency_key.hpp"

#include "message/digest.hpp"
#include "prelude.hpp"

using namespace pawl::message;

TEST_CASE("SHA-256 gives the digests of FIPS 180") {
  CHECK(sha256_hex("") == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  CHECK(sha256_hex("abc") == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  CHECK(sha256_hex("abc") == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

TEST_CASE("an ordinary key is stored as it is") {
  CHECK(make_idempotency_key("order-1") == "order-1");
  CHECK(make_idempotency_key("ключ:ü") == "ключ:ü");
  CHECK(make_idempotency_key(" ") == " ");
  CHECK(make_idempotency_key(std::string(255, 'k')) == std::string(255, 'k'));
  CHECK(make_idempotency_key("SHA256:x") == "SHA256:x");
  CHECK(make_idempotency_key("a\nb\x01") == "a\nb\x01");
}

TEST_CASE("a key that cannot be stored as it is becomes its hash") {
  for (const auto& raw :
       {"\xff\xfe"s, "\xc3"s, "\xed\xa0\x80"s, "a\0b"s, "\0"s, std::string(256, 'k'),
        std::string(1000000, 'k'), "sha256:"s, "sha256:abc"s}) {
    CAPTURE(raw.substr(0, 20), raw.size());
    CHECK(make_idempotency_key(raw) == "sha256:" + sha256_hex(raw));
  }
}

TEST_CASE("the text of another key's hash is not taken for that key") {
  const auto hashed = make_idempotency_key(std::string(256, 'k'));
  REQUIRE(hashed.has_value());
  CHECK(make_idempotency_key(*hashed) != hashed);
}

TEST_CASE("an empty key is no key") {
  CHECK_FALSE(make_idempotency_key("").has_value());
}

TEST_CASE("the payload's hash is stable, and tells a tombstone from an empty value") {
  CHECK(payload_hash("") == static_cast<std::int64_t>(0xe3b0c44298fc1c14ULL));
  CHECK(payload_hash("abc") == static_cast<std::int64_t>(0xba7816bf8f01cfeaULL));
  CHECK(payload_hash(std::nullopt) == 0);
  CHECK(payload_hash(std::nullopt) != payload_hash(""));
}
