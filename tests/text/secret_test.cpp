#include "text/secret.hpp"

#include "prelude.hpp"

using pawl::texts::may_be_secret;

TEST_CASE("a name that APIs use for secrets is one in any spelling") {
  for (const auto* name :
       {"password",     "Password",      "db_password", "client_secret", "clientSecret",
        "access-token", "X-Api-Key",     "api_key",     "apiKey",        "aws.access.key",
        "private_key",  "Authorization", "credentials", "Set-Cookie",    "signature",
        "session_id",   "pin",           "PW",          "sig",           "auth"}) {
    CAPTURE(name);
    CHECK(may_be_secret(name));
  }
}

TEST_CASE("other names are no secret's, also if they hold a short word for one") {
  for (const auto* name : {"", "amount", "currency", "key", "code", "account", "shipping", "author",
                           "spin", "passenger", "design", "opinion"}) {
    CAPTURE(name);
    CHECK_FALSE(may_be_secret(name));
  }
}
