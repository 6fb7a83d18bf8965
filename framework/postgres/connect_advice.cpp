#include "postgres/connect_advice.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace pawl::postgres {
namespace {

struct Advice {
  std::string_view words;
  std::string_view look;
};

// For a client certificate that is missing or rejected. The alert depends on the version of TLS and
// on the server or pooler that sends it.
constexpr std::string_view kCertificate =
    ". The server requires a client certificate, or rejected the one that it received. Set sslcert "
    "and sslkey in postgres.url, and check ssl_ca_file of the server";

// The first whose words are found counts.
constexpr std::array kAdvice{
    Advice{
        "no password supplied",
        ". The server requires a password. Set postgres.password_command, or add the password to "
        "postgres.url as ${file:PATH}"},
    Advice{"does not match host name",
           ". Because of sslmode=verify-full, the server's certificate must contain the host in "
           "postgres.url"},
    Advice{"alert certificate expired",
           ". The certificate of this program has expired. Renew sslcert in postgres.url"},
    Advice{"alert unknown ca",
           ". The server does not trust the authority that signed sslcert in postgres.url. Check "
           "ssl_ca_file of the server"},
    Advice{"alert certificate required", kCertificate},
    Advice{"alert bad certificate", kCertificate},
    Advice{"alert handshake failure", kCertificate},
    Advice{"requires a valid client certificate", kCertificate},
    Advice{"ertificate authentication failed",
           ". The name (CN) of sslcert in postgres.url must be the role, or be mapped to it in "
           "pg_ident.conf of the server"},
    Advice{"no pg_hba.conf entry",
           ". Check user, database, and sslmode in postgres.url, and pg_hba.conf of the server"},
    Advice{"does not support SSL",
           ". sslmode in postgres.url requires TLS. Set ssl = on in the server's configuration"},
    Advice{"permission denied for database",
           ". The user in postgres.url needs a privilege: `GRANT CONNECT ON DATABASE ... TO ...`"},
    Advice{"statement pooling mode",
           ". pawl requires transactions. Set pool_mode of the pooler to transaction, with "
           "postgres.pooled = true, or to session"},
};

bool has(std::string_view text, std::string_view words) {
  return text.find(words) != std::string_view::npos;
}

}  // namespace

std::string read_again(const PasswordSource& from) {
  return from.files.empty()
             ? ""
             : fmt::format(" (from {}, which pawl reads at each connect, without a restart)",
                           from.files);
}

std::string connect_advice(std::string_view report, const PasswordSource& from,
                           const std::string& server) {
  if (has(report, "password authentication failed")) {
    if (from.command) {
      return ". The server rejects the password that postgres.password_command printed for this "
             "user";
    }
    return fmt::format(". Check user and password in postgres.url{}, and pg_hba.conf of the server",
                       from.files.empty() ? " or in libpq's environment" : read_again(from));
  }
  if (has(report, "FATAL: database \"") && has(report, "\" does not exist"))
    return ". Create the database (`createdb`), or fix its name in postgres.url";
  if (has(report, "certificate verify failed")) {
    return fmt::format(
        ". sslrootcert in postgres.url must contain the authority that signed the server's "
        "certificate, and the certificate must not have expired. Show it: openssl s_client "
        "-starttls postgres -connect {} -CAfile FILE </dev/null",
        server);
  }
  const auto found = std::find_if(kAdvice.begin(), kAdvice.end(), [report](const Advice& advice) {
    return has(report, advice.words);
  });
  return found == kAdvice.end() ? "" : std::string(found->look);
}

std::string correction(std::string_view report) {
  if (auto advice = connect_advice(report, {}, ""); !advice.empty())
    return advice;
  // In other words than those with advice. "role" and "database" are PostgreSQL's and PgBouncer's,
  // "postgres." begins an option of ours.
  constexpr std::array kOther{std::string_view{"FATAL: role \""},
                              std::string_view{"is not permitted to log in"},
                              std::string_view{"no such database"},
                              std::string_view{"no such user"},
                              std::string_view{"postgres.password_command failed"},
                              std::string_view{"postgres.url: "},
                              std::string_view{"another database responds"}};
  const auto found = std::find_if(kOther.begin(), kOther.end(),
                                  [report](std::string_view words) { return has(report, words); });
  return found == kOther.end() ? "" : std::string(*found);
}

bool is_answer(std::string_view report) {
  return has(report, "FATAL:") || has(report, "certificate verify failed") ||
         std::any_of(kAdvice.begin(), kAdvice.end(),
                     [report](const Advice& advice) { return has(report, advice.words); });
}

}  // namespace pawl::postgres
