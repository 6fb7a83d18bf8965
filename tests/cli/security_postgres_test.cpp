// Authentication to PostgreSQL as docs/security-postgresql.md describes it, on a server that
// requires it.
#include <csignal>
#include <pqxx/pqxx>

#include "prelude.hpp"
#include "secure_site.hpp"

namespace {

/// What a superuser does to the server.
void administer(const std::string& url, const std::string& sql) {
  pqxx::connection connection(url);
  pqxx::nontransaction work(connection);
  work.exec(sql);
}

class PostgresSite : public SecureSite {
 public:
  PostgresSite() {
    for (const auto* const role : {"payments", "certified"}) {
      administer(url, run_script(scripts_folder() / "migrate", {"grants", "--role", role}));
      administer(url, std::string("GRANT ALL ON ledger, accounts TO ") + role);
    }
    secrets = {"first-secret", "second-secret"};
    set_password("first-secret");
  }

  /// The block of the document with this server in it.
  [[nodiscard]] std::string block(const std::string& name) const {
    auto text = replaced(
        security_block(name),
        {{"/etc/pawl/", servers().file("").string()},
         {"@db.example/payments?", "@localhost:" + std::to_string(servers().postgres.port()) + "/" +
                                       url.substr(url.rfind('/') + 1) + "?hostaddr=127.0.0.1&"}});
    return text;
  }

  [[nodiscard]] std::string by_password() const {
    return replaced(block("postgres-password.toml"),
                    {{"/run/secrets/", servers().file("").string()}});
  }
  [[nodiscard]] std::string by_command(const std::string& script) const {
    const auto path = servers().file("postgres-password-command");
    write_command(path, script);
    return replaced(block("postgres-command.toml"),
                    {{"/usr/local/bin/postgres-password", path.string()}});
  }
  [[nodiscard]] std::string by_certificate(const Authority::Certificate& certificate) const {
    return replaced(block("postgres-certificate.toml"),
                    {{"payments@", "certified@"},
                     {servers().file("payments.pem").string(), certificate.file},
                     {servers().file("payments.key").string(), certificate.key}});
  }

  void set_password(const std::string& password) const {
    administer(url, "ALTER ROLE payments PASSWORD '" + password + "'");
    write_file(servers().file("postgres-password"), password + "\n");
  }

  /// The program does its work as this role, over TLS.
  void check_consumes(const std::string& role) {
    const auto check = run_secured({"check"});
    INFO(check.out << check.err);
    CHECK(check.code == 0);
    pay_many(0, "e", 3);
    const auto child = start_secured();
    wait_for_stored(0, 2);
    wait_for_sql(
        "SELECT count(*) > 0 FROM pg_stat_activity JOIN pg_stat_ssl USING (pid)"
        " WHERE datname = current_database() AND ssl AND usename = '" +
            role + "'",
        "t");
    end(*child);
  }

  /// `check` says why it is not let in, `run` waits and says so too.
  void check_refused(const std::string& cause, const std::string& option) {
    const auto check = run_secured({"check"});
    INFO(check.out << check.err);
    CHECK(check.code == 1);
    CHECK_THAT(check.out, ContainsSubstring(cause) && ContainsSubstring(option));
    const auto child = start_secured();
    child->wait_for_output(" database_unreachable: ", kDeadline);
    CHECK_THAT(child->output(), ContainsSubstring(cause) && ContainsSubstring(option));
    end(*child);
  }

  static SecureServers& servers() { return SecureServers::shared(); }
};

/// The server shows another certificate until this object goes.
class OtherCertificate {
 public:
  OtherCertificate(std::string url, const std::string& name) : url_(std::move(url)) { set(name); }
  ~OtherCertificate() { set("server"); }
  OtherCertificate(const OtherCertificate&) = delete;
  OtherCertificate& operator=(const OtherCertificate&) = delete;

 private:
  void set(const std::string& name) const {
    administer(url_, "ALTER SYSTEM SET ssl_cert_file = '" + name + ".pem'");
    administer(url_, "ALTER SYSTEM SET ssl_key_file = '" + name + ".key'");
    administer(url_, "SELECT pg_reload_conf()");
    wait_until(
        [&] {
          pqxx::connection connection(url_);
          pqxx::nontransaction work(connection);
          return work.exec("SHOW ssl_cert_file")[0][0].as<std::string>() == name + ".pem" &&
                 work.exec("SHOW ssl_key_file")[0][0].as<std::string>() == name + ".key";
        },
        kDeadline, "the certificate of " + name);
  }

  const std::string url_;
};

}  // namespace

TEST_CASE("a password over TLS that is verified") {
  PostgresSite site;
  site.postgres = site.by_password();
  site.check_consumes("payments");
  write_file(site.servers().file("postgres-password"), "second-secret");
  site.postgres = site.by_password();
  site.check_refused("password authentication failed", "Check user and password in postgres.url");
}

TEST_CASE("a client certificate") {
  PostgresSite site;
  const auto& servers = PostgresSite::servers();
  site.postgres = site.by_certificate(servers.authority.sign("certified", "DNS:certified"));
  site.check_consumes("certified");

  site.postgres = site.by_certificate(servers.authority.sign("somebody", "DNS:somebody"));
  site.check_refused("certificate authentication failed", "The name (CN) of sslcert");
  site.postgres = site.by_certificate(servers.stranger.sign("certified", "DNS:certified"));
  site.check_refused("unknown ca", "sslcert in postgres.url");
  site.postgres = site.by_certificate(servers.authority.sign("certified", "DNS:certified", -1));
  site.check_refused("certificate expired", "Renew sslcert in postgres.url");
}

TEST_CASE("a server that is not the one is not connected to") {
  PostgresSite site;
  SECTION("an authority that is not known") {
    site.postgres = replaced(site.by_password(), {{site.servers().file("postgres-ca.pem").string(),
                                                   site.servers().stranger.file()}});
    site.check_refused("certificate verify failed", "sslrootcert in postgres.url");
  }
  SECTION("another host") {
    const OtherCertificate other(site.url, "elsewhere");
    site.postgres = site.by_password();
    site.check_refused("does not match host name", "Because of sslmode=verify-full");
  }
  SECTION("a certificate that has ended") {
    const OtherCertificate other(site.url, "ended");
    site.postgres = site.by_password();
    site.check_refused("certificate verify failed", "the certificate must not have expired");
  }
}

TEST_CASE("a password in a file may change while the program runs") {
  PostgresSite site;
  const auto file = site.servers().file("postgres-password");
  site.postgres = site.by_password();
  // A relay has sessions of its own.
  site.more = "[outbox]\nrelay = \"on\"\n";
  site.pay_many(0, "e", 3);
  const auto child = site.start_secured();
  site.wait_for_stored(0, 2);
  const auto end_sessions = [&] {
    site.sql(
        "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity"
        " WHERE datname = current_database() AND usename = 'payments'");
  };
  site.set_password("second-secret");
  end_sessions();
  site.pay_many(0, "later", 3);
  site.wait_for_stored(0, 5);
  site.wait_for_sql(
      "SELECT count(DISTINCT application_name) FROM pg_stat_activity"
      " WHERE datname = current_database() AND usename = 'payments'"
      " AND (application_name = 'pawl outbox' OR application_name LIKE 'pawl group-of-%')",
      "2");
  const auto status = site.run_secured({"status"});
  INFO(status.out << status.err);
  CHECK(status.code == 0);

  // While the file is away, connecting fails and is tried again.
  std::filesystem::rename(file, file.string() + ".away");
  end_sessions();
  child->wait_for_output("postgres.url: the file " + file.string() + " cannot be read", kDeadline);
  site.pay_many(0, "back", 3);
  std::filesystem::rename(file.string() + ".away", file);
  site.wait_for_stored(0, 8);
  site.end(*child);
}

TEST_CASE("a password that is rotated under a running process is named as the reason") {
  PostgresSite site;
  site.postgres = site.by_password();
  site.more = "[log]\nprogress_interval = \"500ms\"\n";
  site.pay_many(0, "e", 3);
  const auto child = site.start_secured();
  site.wait_for_stored(0, 2);
  administer(site.url, "ALTER ROLE payments PASSWORD 'second-secret'");
  site.sql(
      "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity"
      " WHERE datname = current_database() AND usename = 'payments'");
  child->wait_for_output("database_unreachable: cannot use PostgreSQL", kDeadline);
  child->wait_for_output("pawl retries, and fails until you fix the cause", kDeadline);
  child->wait_for_output(" database_unreachable_s=", kDeadline);
  const auto log = child->output();
  INFO(log);
  CHECK_THAT(log.substr(log.rfind(" database_unreachable_s=")),
             ContainsSubstring("password authentication failed"));
  administer(site.url, "ALTER ROLE payments PASSWORD 'first-secret'");
  site.pay_many(0, "later", 3);
  site.wait_for_stored(0, 5);
  child->wait_for_output("database_reachable", kDeadline);
  site.end(*child);
}

TEST_CASE(
    "a password that is not encoded is waited for, under a running process and at the start") {
  PostgresSite site;
  site.secrets.emplace_back("n3w");
  const auto password_file = site.servers().file("postgres-password");
  site.postgres = site.by_password();
  site.pay_many(0, "e", 3);
  {
    const auto child = site.start_secured();
    site.wait_for_stored(0, 2);
    write_file(password_file, "n3w@pass/100%");
    site.sql(
        "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity"
        " WHERE datname = current_database() AND usename = 'payments'");
    child->wait_for_output("postgres.url: contains an unexpected @", kDeadline);
    child->wait_for_output("pawl retries, and fails until you fix the cause", kDeadline);
    site.set_password("first-secret");
    site.pay_many(0, "back", 3);
    site.wait_for_stored(0, 5);
    site.end(*child);
  }
  write_file(password_file, "n3w@pass/100%");
  site.check_refused("postgres.url: contains an unexpected @", "Write @ as %40");
  write_file(password_file, "n3w%");
  site.check_refused("postgres.url: contains a % that", "Write a literal % as %25");

  const auto child = site.start_secured();
  child->wait_for_output(" database_unreachable: ", kDeadline);
  site.set_password("first-secret");
  site.pay_many(0, "later", 3);
  site.wait_for_stored(0, 8);
  site.end(*child);
}

TEST_CASE("a password from a command may change while the program runs") {
  PostgresSite site;
  const auto runs = site.servers().file("runs").string();
  site.postgres = site.by_command("echo $1 >>" + runs + "; exec cat " +
                                  site.servers().file("postgres-password").string());
  // A relay has sessions of its own.
  site.more = "[outbox]\nrelay = \"on\"\n";
  site.pay_many(0, "e", 3);
  const auto child = site.start_secured();
  site.wait_for_stored(0, 2);
  const std::string programs =
      "SELECT count(DISTINCT application_name) FROM pg_stat_activity"
      " WHERE datname = current_database() AND usename = 'payments'"
      " AND (application_name = 'pawl outbox' OR application_name LIKE 'pawl group-of-%')";
  site.wait_for_sql(programs, "2");
  CHECK(read_file(runs).starts_with("payments\n"));

  site.set_password("second-secret");
  site.sql(
      "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity"
      " WHERE datname = current_database() AND usename = 'payments'");
  site.pay_many(0, "later", 3);
  site.wait_for_stored(0, 5);
  site.wait_for_sql(programs, "2");
  const auto status = site.run_secured({"status"});
  INFO(status.out << status.err);
  CHECK(status.code == 0);
  site.end(*child);
}

TEST_CASE("a password command that fails is a connection that failed, and is told by its option") {
  PostgresSite site;
  const std::string option = "postgres.password_command";
  site.postgres = site.by_command("echo first-secret; echo first-secret >&2; exit 3");
  site.check_refused(option + " failed: it exited with code 3",
                     "Run it as the user of this process");
  site.postgres = site.by_command("echo; echo first-secret");
  site.check_refused(option + " failed: its first line of output is empty",
                     "Run it as the user of this process");
  site.postgres = site.by_command("echo second-secret");
  site.check_refused("password authentication failed",
                     "the password that postgres.password_command printed");

  // Nobody waits for one that hangs once the program is told to stop.
  const auto started = site.servers().file("started");
  site.postgres = site.by_command("echo $$ >" + started.string() + "; exec sleep 600");
  const auto child = site.start_secured();
  wait_until([&] { return read_file(started).ends_with('\n'); }, kDeadline, "the command to run");
  site.end(*child);
  CHECK(::kill(std::stoi(read_file(started)), 0) != 0);

  site.postgres = replaced(site.by_command("echo first-secret"),
                           {{"postgres-password-command", "no-such-command"}});
  for (const auto* const command : {"run", "check"}) {
    const auto outcome = site.run_secured({command});
    INFO(outcome.out << outcome.err);
    CHECK(outcome.code == 2);
    CHECK_THAT(outcome.out + outcome.err, ContainsSubstring(option + " cannot be run"));
  }
}

TEST_CASE("a role without grants ends the program, with where they stand") {
  PostgresSite site;
  administer(site.url, "REVOKE ALL ON SCHEMA pawl FROM payments");
  site.postgres = site.by_password();
  const auto run = site.run_secured({"run"});
  INFO(run.out << run.err);
  CHECK(run.code == 1);
  CHECK_THAT(run.out + run.err, ContainsSubstring("permission denied for schema pawl") &&
                                    ContainsSubstring("docs/deploy.md"));
  CHECK(site.run_secured({"check"}).code == 1);

  administer(site.url, "REVOKE CONNECT ON DATABASE " + site.url.substr(site.url.rfind('/') + 1) +
                           " FROM PUBLIC");
  site.check_refused("permission denied for database", "GRANT CONNECT ON DATABASE");
}
