#include "postgres/connect_advice.hpp"
#include "prelude.hpp"

using pawl::postgres::connect_advice;
using pawl::postgres::correction;
using pawl::postgres::is_answer;

TEST_CASE("libpq's report of a refusal is completed by the option to look at") {
  struct Row {
    std::string report;
    std::string names;  // empty: there is nothing to add
  };
  const auto row = GENERATE(values<Row>({
      {"FATAL: password authentication failed for user \"app\"", "password in postgres.url"},
      {"fe_sendauth: no password supplied", "postgres.password_command"},
      {"SSL error: certificate verify failed", "-connect db:5432 -CAfile"},
      {"server certificate for \"a\" does not match host name \"b\"", "sslmode=verify-full"},
      {"SSL error: sslv3 alert certificate expired", "Renew sslcert"},
      {"SSL error: tlsv1 alert unknown ca", "ssl_ca_file"},
      {"SSL error: tlsv13 alert certificate required", "sslcert and sslkey"},
      {"SSL error: sslv3 alert bad certificate", "sslcert and sslkey"},
      {"SSL error: sslv3 alert handshake failure", "sslcert and sslkey"},
      {"FATAL: connection requires a valid client certificate", "sslcert and sslkey"},
      {"FATAL: certificate authentication failed for user \"app\"", "(CN) of sslcert"},
      {"FATAL: no pg_hba.conf entry for host \"::1\", user \"app\"", "sslmode in postgres.url"},
      {"server does not support SSL, but SSL was required", "ssl = on"},
      {"FATAL: permission denied for database \"p\"", "GRANT CONNECT ON DATABASE"},
      {"FATAL: database \"shop\" does not exist", "createdb"},
      {"transaction blocks not allowed in statement pooling mode",
       "pool_mode of the pooler to transaction"},
      {"FATAL: role \"app\" does not exist", ""},
      {"connection to server at \"db\" failed: Connection refused", ""},
  }));
  INFO(row.report);
  const auto advice = connect_advice(row.report, {}, "db:5432");
  CHECK(advice.empty() == row.names.empty());
  CHECK_THAT(advice, ContainsSubstring(row.names));
}

TEST_CASE("a password that a command printed is not looked for in postgres.url") {
  CHECK(connect_advice("FATAL: password authentication failed for user \"app\"", {.command = true},
                       "db:5432") ==
        ". The server rejects the password that postgres.password_command printed for this user");
}

TEST_CASE("a password from a file is looked for in the file, and no restart is asked for") {
  CHECK(connect_advice("FATAL: password authentication failed for user \"app\"",
                       {.files = "/run/secrets/pw"}, "db:5432") ==
        ". Check user and password in postgres.url (from /run/secrets/pw, which pawl reads at each "
        "connect, without a restart), and pg_hba.conf of the server");
}

TEST_CASE("failures that need a correction are distinguished from temporary ones") {
  for (const auto* report :
       {"cannot use PostgreSQL: connection to server at \"db\" failed: FATAL: password "
        "authentication failed for user \"app\". Check user and password in postgres.url",
        "FATAL: role \"app\" does not exist", "FATAL: role \"app\" is not permitted to log in",
        "FATAL: database \"shop\" does not exist", "SSL error: certificate verify failed",
        "ERROR: transaction blocks not allowed in statement pooling mode",
        "postgres.password_command failed: it exited with code 3 (get)",
        "postgres.url: the file /etc/pawl/pw cannot be read",
        "another database responds at postgres.url"}) {
    CAPTURE(report);
    CHECK_FALSE(correction(report).empty());
  }
  for (const auto* report :
       {"terminating connection due to administrator command",
        "connection to server at \"db\" failed: Connection refused",
        "FATAL: the database system is starting up", "FATAL: sorry, too many clients already",
        "FATAL: too many connections for role \"app\"",
        "db port 5432 did not respond within 5 s"}) {
    CAPTURE(report);
    CHECK(correction(report).empty());
  }
}

TEST_CASE("reports with the same fix have the same correction") {
  const auto password = correction("FATAL: password authentication failed for user \"app\"");
  CHECK(correction("cannot use PostgreSQL: FATAL: password authentication failed for user \"b\"") ==
        password);
  CHECK(correction("FATAL: role \"app\" does not exist") != password);
}

TEST_CASE("a rejection by any server or pooler is a response, and silence is not") {
  CHECK(is_answer("connection to server at \"db\" failed: FATAL: role \"app\" does not exist"));
  CHECK(is_answer("fe_sendauth: no password supplied"));
  CHECK(is_answer("SSL error: certificate verify failed"));
  CHECK_FALSE(is_answer("connection to server at \"db\" failed: Connection refused"));
  CHECK_FALSE(is_answer("db port 5432 did not respond within 5 s"));
  CHECK_FALSE(is_answer(""));
}
