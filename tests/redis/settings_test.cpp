#include "redis/settings.hpp"

#include "prelude.hpp"

TEST_CASE("an address is a host and a port") {
  struct Case {
    std::string text;
    std::string host;  // "": it is none
    int port = 0;
  };
  const auto one =
      GENERATE(Case{"localhost:6379", "localhost", 6379}, Case{"10.0.0.1:1", "10.0.0.1", 1},
               Case{"redis_1.example-2.net:65535", "redis_1.example-2.net", 65535},
               Case{"[::1]:6379", "::1", 6379}, Case{"[fe80::1%eth0]:6379", "fe80::1%eth0", 6379},
               Case{"", ""}, Case{"localhost", ""}, Case{"localhost:", ""}, Case{":6379", ""},
               Case{"localhost:0", ""}, Case{"localhost:65536", ""}, Case{"localhost:6379 ", ""},
               Case{"local host:6379", ""}, Case{"::1:6379", ""}, Case{"[localhost]:6379", ""},
               Case{"redis://localhost:6379", ""}, Case{"user:secret@localhost:6379", ""});
  CAPTURE(one.text);
  const auto address = pawl::redis::parse_address(one.text);
  REQUIRE(address.has_value() == !one.host.empty());
  if (address) {
    CHECK(address->host == one.host);
    CHECK(address->port == one.port);
    CHECK(address->text() == one.text);
  }
}
