#include "config/redact.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

using Catch::Matchers::ContainsSubstring;
using pawl::config::redact_url;

TEST_CASE("a connection URI keeps everything but its secrets") {
  CHECK(redact_url("postgresql://localhost/payments") == "postgresql://localhost/payments");
  CHECK(redact_url("postgresql://app@db:5432/payments") == "postgresql://app@db:5432/payments");
  CHECK(redact_url("postgresql://app:hunter2@db/payments") == "postgresql://app:***@db/payments");
  CHECK(redact_url("postgres://app:hunter2@db1,db2:5433/p?target_session_attrs=read-write") ==
        "postgres://app:***@db1,db2:5433/p?target_session_attrs=read-write");
  CHECK(redact_url("postgresql://db/p?user=app&password=hunter2&sslmode=require") ==
        "postgresql://db/p?user=app&password=***&sslmode=require");
  CHECK(redact_url("postgresql:///p?sslkey=/k&sslpassword=hunter2") ==
        "postgresql:///p?sslkey=/k&sslpassword=***");
}

TEST_CASE("a connection string keeps everything but its secrets") {
  CHECK(redact_url("host=db dbname=p") == "host=db dbname=p");
  CHECK(redact_url("host=db password=hunter2 dbname=p") == "host=db password=*** dbname=p");
  CHECK(redact_url("password = 'hunter2 \\' more' host = db") == "password=*** host=db");
  CHECK(redact_url("password=hunter2\\ more host=db") == "password=*** host=db");
  CHECK(redact_url("PASSWORD=hunter2") == "PASSWORD=***");
  CHECK(redact_url("").empty());
}

TEST_CASE("whatever surrounds it, a password does not show") {
  const auto* url = GENERATE(
      "postgresql://app:hunter2@host@db/p", "postgresql://app:a?hunter2@db/p",
      "postgresql://app:a/hunter2@db/p", "postgresql://app:@hunter2@db?x=y",
      "postgresql://db/p?pass%77ord=hunter2", "postgresql://db/p?password=x@hunter2",
      "postgresql://db/p?oauth_client_secret=hunter2", "postgresql://db/p?scram_client_key=hunter2",
      "postgresql://app:hunter2@", "mysql://app:hunter2@db/p", "host=db password='hunter2",
      "host=db password 'hunter2'", "hunter2", "password='a'hunter2", "password=a\thunter2");
  CAPTURE(url);
  CHECK_THAT(redact_url(url), !ContainsSubstring("hunter2"));
}
