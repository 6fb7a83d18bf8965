#include "message/base64.hpp"

#include "prelude.hpp"

using pawl::message::base64;
using pawl::message::from_base64;

TEST_CASE("base64 keeps every byte") {
  const auto bytes = GENERATE(as<std::string>{}, "", "A", "AB", "ABC", "\0\xff\0"s, "ABCD\n");
  CHECK(from_base64(base64(bytes)) == bytes);
}

TEST_CASE("a text is base64 only if it is what base64() writes") {
  const auto* text = GENERATE("QQ", "QQ=", "QQ==\n\n\n\n", "QUI=\n\n\n\n", "    QUJD", "QUJD----",
                              "====", "Q===", "=QQQ", "QQ==QQ==", "QR==", "Q Q=", "Q-_=", "%%%%");
  CAPTURE(text);
  CHECK_THROWS_AS(from_base64(text), std::invalid_argument);
}
