#pragma once

#include <chrono>
#include <pqxx/pqxx>
#include <stdexcept>
#include <string>

#include "payments_world.hpp"

namespace pawl::test {

/// A PgBouncer before a world's server, for as long as the object lives.
class Pooler {
 public:
  Pooler(PaymentsWorld& world, const std::string& mode) : folder_("pgbouncer") {
    const auto url = testing::run_script(testing::scripts_folder() / "services",
                                         {"pgbouncer", "start", folder_.path().string(), "--mode",
                                          mode, "--postgres", world.server().folder().string()});
    const auto& direct = world.url();
    url_ = url.substr(0, url.rfind('/')) + direct.substr(direct.rfind('/'));
  }
  ~Pooler() {
    try {
      testing::run_script(testing::scripts_folder() / "services",
                          {"pgbouncer", "stop", folder_.path().string()});
    } catch (const std::exception&) {
      // It has gone already; its folder goes now.
    }
  }
  Pooler(const Pooler&) = delete;
  Pooler& operator=(const Pooler&) = delete;

  [[nodiscard]] const std::string& url() const { return url_; }
  /// A command of PgBouncer's console, as PAUSE.
  void command(const std::string& text) const { (void)answer(text); }
  /// Statements that clients prepare stay in the server process in which they were prepared, as
  /// before PgBouncer 1.21, which knows nothing else.
  void prepare_nowhere_else() const {
    if (answer("SHOW CONFIG").find("max_prepared_statements") != std::string::npos)
      command("SET max_prepared_statements = 0");
  }

 private:
  [[nodiscard]] std::string answer(const std::string& text) const {
    return testing::run_script("psql",
                               {"--no-psqlrc", "--quiet", "--dbname",
                                url_.substr(0, url_.rfind('/')) + "/pgbouncer", "--command", text});
  }

  testing::TempDir folder_;
  std::string url_;
};

/// While PgBouncer is paused it has no connection to the server, and keeps those of its clients.
/// Each of these leaves it so for no longer than it takes.
class SwappedDatabases {
 public:
  SwappedDatabases(const Pooler& pooler, PaymentsWorld& world)
      : pooler_(pooler),
        admin_(world.server().url("postgres")),
        name_(world.url().substr(world.url().rfind('/') + 1)),
        other_(name_ + "_other") {}

  [[nodiscard]] std::string other_url(PaymentsWorld& world) const {
    return world.server().url(other_);
  }
  /// The other database is as this one is now.
  void copy() {
    paused([this] { run("CREATE DATABASE " + other_ + " TEMPLATE " + name_); });
  }
  /// Who connects to one gets the other from now on.
  void swap() {
    paused([this] {
      const auto between = name_ + "_between";
      rename(name_, between);
      rename(other_, name_);
      rename(between, other_);
    });
  }

 private:
  template <typename Change>
  void paused(const Change& change) {
    pooler_.command("PAUSE");
    run("SELECT pg_terminate_backend(pid, 30000) FROM pg_stat_activity"
        " WHERE datname IN ('" +
        name_ + "', '" + other_ + "')");
    change();
    pooler_.command("RESUME");
  }
  void rename(const std::string& from, const std::string& to) {
    run("ALTER DATABASE " + from + " RENAME TO " + to);
  }
  void run(const std::string& sql) { pqxx::nontransaction(admin_).exec(sql); }

  const Pooler& pooler_;
  pqxx::connection admin_;
  std::string name_;
  std::string other_;
};

}  // namespace pawl::test
