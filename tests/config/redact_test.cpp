#include "config/redact.hpp"

#include "prelude.hpp"

using pawl::config::redact_url;

TEST_CASE("a connection URI is shown as what libpq makes of it, but for its secrets") {
  CHECK(redact_url("postgresql://localhost/payments") == "dbname=payments host=localhost");
  CHECK(redact_url("postgresql://app@db:5432/payments") ==
        "user=app dbname=payments host=db port=5432");
  CHECK(redact_url("postgresql://app:hunter2@db/payments") ==
        "user=app password=*** dbname=payments host=db");
  CHECK(redact_url("postgres://app:hunter2@db1,db2:5433/p?target_session_attrs=read-write") ==
        "user=app password=*** dbname=p host=db1,db2 port=,5433 target_session_attrs=read-write");
  CHECK(redact_url("postgresql://db/p?user=app&password=hunter2&sslmode=require") ==
        "user=app password=*** dbname=p host=db sslmode=require");
  CHECK(redact_url("postgresql:///p?sslkey=/k&sslpassword=hunter2") ==
        "dbname=p sslkey=/k sslpassword=***");
  CHECK(redact_url("postgresql://db/p?ser%76ice=s&pass%77ord=hunter2&options=hunter2") ==
        "service=s password=*** dbname=p host=db options=***");
}

TEST_CASE("an administrator's command connects to the same database, without pawl's credentials") {
  const auto [url, options] = GENERATE(table<std::string, std::string>({
      {"postgresql://localhost/payments", "-d 'dbname=payments host=localhost' "},
      {"postgresql://app:hunter2@db:5433/p", "-d 'dbname=p host=db port=5433' "},
      {redact_url("postgresql://app:hunter2@db/p"), "-d 'dbname=p host=db' "},
      {"postgresql://app@db/p?passfile=/p&sslmode=verify-full&sslrootcert=/ca&sslcert=/c&sslkey=/k",
       "-d 'dbname=p host=db sslmode=verify-full sslrootcert=/ca' "},
      {"postgresql://app:hunter2@", ""},
      {"", ""},
      {redact_url("postgresql://app:pw@db:hunter2/p"), ""},
  }));
  CAPTURE(url);
  CHECK(pawl::config::psql_text(url, "SELECT 1") ==
        "psql " + options + "-U postgres -c 'SELECT 1'");
}

TEST_CASE("a connection string keeps everything but its secrets") {
  CHECK(redact_url("dbname=p host=db") == "dbname=p host=db");
  CHECK(redact_url("password=hunter2 host=db") == "password=*** host=db");
  CHECK(redact_url("password = 'hunter2 \\' more' host = db") == "password=*** host=db");
  CHECK(redact_url("password=hunter2\\ more host=db") == "password=*** host=db");
  CHECK(redact_url("user='a b' dbname='it\\'s \\\\' host=''") ==
        "user='a b' dbname='it\\'s \\\\' host=''");
  CHECK(redact_url("").empty());
}

TEST_CASE("whatever surrounds it, a password does not show") {
  const auto* url = GENERATE(
      "postgresql://app:hunter2@host@db/p", "postgresql://app:a?hunter2@db/p",
      "postgresql://app:a/hunter2@db/p", "postgresql://app:12/hunter2@db/p",
      "postgresql://app:@hunter2@db?x=y", "postgresql://db/p?pass%77ord=hunter2",
      "postgresql://db/p?password=x@hunter2", "postgresql://db/p?oauth_client_secret=hunter2",
      "postgresql://db/p?scram_client_key=hunter2", "postgresql://app:hunter2@",
      "postgresql://app:pw@db:hunter2/p", "postgresql://db/p?sslmode=hunter2",
      "mysql://app:hunter2@db/p", "host=db password='hunter2", "host=db password 'hunter2'",
      "hunter2", "password='a'hunter2", "password=a\thunter2", "PASSWORD=hunter2");
  CAPTURE(url);
  CHECK_THAT(redact_url(url), !ContainsSubstring("hunter2"));
}

TEST_CASE("what percent-encoding held back breaks neither lines nor JSON") {
  CHECK(redact_url("postgresql://db/a%0ab") == "dbname=*** host=db");
  CHECK(redact_url("postgresql://db/a%ffb") == "dbname=*** host=db");
  CHECK(redact_url("postgresql://db/z%C3%A4hlung") == "dbname=z\u00e4hlung host=db");
}

TEST_CASE("in short a connection is its user, servers, and database") {
  using pawl::config::short_url;
  CHECK(short_url("postgresql://app:hunter2@db:5432/payments?sslmode=require") ==
        "app@db:5432/payments");
  CHECK(short_url("postgres://app:hunter2@db1,db2:5433/p") == "app@db1,db2:5433/p");
  CHECK(short_url("host=a,b port=5432 dbname=p") == "a:5432,b:5432/p");
  CHECK(short_url("service=s password=hunter2").empty());
  CHECK(short_url("postgresql://app:hunter2@host@db/p") == "(connection string)");
}
