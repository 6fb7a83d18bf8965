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
    "; the server requires a client certificate, or rejected the one that it received: set sslcert "
    "and sslkey in postgres.url, and check the server's ssl_ca_file";

// The first whose words are found counts.
constexpr std::array kAdvice{
    Advice{"no password supplied",
           "; the server wants a password: set postgres.password_command, or write it into "
           "postgres.url as ${file:PATH}"},
    Advice{"does not match host name",
           "; sslmode=verify-full of postgres.url wants the host that postgres.url names in the "
           "server's certificate"},
    Advice{"alert certificate expired",
           "; this program's certificate has ended: renew sslcert of postgres.url"},
    Advice{"alert unknown ca",
           "; the server does not know the authority of sslcert of postgres.url: look at its "
           "ssl_ca_file"},
    Advice{"alert certificate required", kCertificate},
    Advice{"alert bad certificate", kCertificate},
    Advice{"alert handshake failure", kCertificate},
    Advice{"requires a valid client certificate", kCertificate},
    Advice{
        "ertificate authentication failed",
        "; the name (CN) in sslcert of postgres.url must be the role's, or be mapped to it by the "
        "server's pg_ident.conf"},
    Advice{"no pg_hba.conf entry",
           "; look at user, database and sslmode in postgres.url, and at the server's pg_hba.conf"},
    Advice{"does not support SSL",
           "; sslmode of postgres.url wants TLS: set ssl = on in the server's configuration"},
    Advice{"permission denied for database",
           "; the user of postgres.url needs a grant: GRANT CONNECT ON DATABASE ... TO ..."},
    Advice{"statement pooling mode",
           "; pawl needs transactions: set the pooler's pool_mode to transaction, with "
           "postgres.pooled = true, or to session"},
};

bool has(std::string_view text, std::string_view words) {
  return text.find(words) != std::string_view::npos;
}

}  // namespace

std::string read_again(const PasswordSource& from) {
  return from.files.empty()
             ? ""
             : fmt::format(" (of {}, which pawl reads again at each connect, without a restart)",
                           from.files);
}

std::string connect_advice(std::string_view report, const PasswordSource& from,
                           const std::string& server) {
  if (has(report, "password authentication failed")) {
    if (from.command) {
      return "; the server does not take what postgres.password_command printed for this user";
    }
    return fmt::format(
        "; look at user and password in postgres.url{}, and at the server's pg_hba.conf",
        from.files.empty() ? ", or in libpq's environment" : read_again(from));
  }
  if (has(report, "FATAL: database \"") && has(report, "\" does not exist"))
    return "; make the database (createdb), or correct its name in postgres.url";
  if (has(report, "certificate verify failed")) {
    return fmt::format(
        "; the authority that signed the server's certificate must stand in sslrootcert of "
        "postgres.url, and the certificate must not have ended: openssl s_client -starttls "
        "postgres "
        "-connect {} -CAfile FILE </dev/null",
        server);
  }
  const auto found = std::find_if(kAdvice.begin(), kAdvice.end(), [report](const Advice& advice) {
    return has(report, advice.words);
  });
  return found == kAdvice.end() ? "" : std::string(found->look);
}

bool needs_correction(std::string_view report) {
  // In other words than those with advice. "role" and "database" are PostgreSQL's and PgBouncer's,
  // "postgres." begins an option of ours.
  constexpr std::array kOther{std::string_view{"FATAL: role \""},
                              std::string_view{"is not permitted to log in"},
                              std::string_view{"no such database"},
                              std::string_view{"no such user"},
                              std::string_view{"postgres.password_command failed"},
                              std::string_view{"postgres.url: "},
                              std::string_view{"another database responds"}};
  return !connect_advice(report, {}, "").empty() ||
         std::any_of(kOther.begin(), kOther.end(),
                     [report](std::string_view words) { return has(report, words); });
}

bool is_answer(std::string_view report) {
  return has(report, "FATAL:") || has(report, "certificate verify failed") ||
         std::any_of(kAdvice.begin(), kAdvice.end(),
                     [report](const Advice& advice) { return has(report, advice.words); });
}

}  // namespace pawl::postgres
