// The dashboard under `/` of [monitoring], in `pawl run` with real Kafka: by a proxy's header.
#include <curl/curl.h>
#include <fmt/format.h>

#include <csignal>
#include <pqxx/pqxx>

#include "free_port.hpp"
#include "prelude.hpp"
#include "site.hpp"

namespace {

struct Reply {
  long status = 0;
  std::string body;
  std::string location;
  std::string head;
};

std::size_t append(const char* data, std::size_t size, std::size_t count, void* to) {
  static_cast<std::string*>(to)->append(data, size * count);
  return size * count;
}

constexpr const char* kToken = "a token of the proxy's";

/// A browser behind the proxy, which the test is. `form` empty: GET. `more`: further headers.
Reply ask(const std::string& url, const std::string& actor, const std::string& form = "",
          const std::vector<std::string>& more = {}) {
  const std::unique_ptr<CURL, void (*)(CURL*)> curl(curl_easy_init(), curl_easy_cleanup);
  Reply reply;
  curl_easy_setopt(curl.get(), CURLOPT_URL, url.c_str());
  curl_easy_setopt(curl.get(), CURLOPT_TIMEOUT_MS, 60000L);
  curl_easy_setopt(curl.get(), CURLOPT_WRITEFUNCTION, append);
  curl_easy_setopt(curl.get(), CURLOPT_WRITEDATA, &reply.body);
  curl_easy_setopt(curl.get(), CURLOPT_HEADERFUNCTION, append);
  curl_easy_setopt(curl.get(), CURLOPT_HEADERDATA, &reply.head);
  auto lines = more;
  if (!actor.empty()) {
    lines.push_back("X-Forwarded-User: " + actor);
    lines.push_back(fmt::format("Authorization: Bearer {}", kToken));
  }
  curl_slist* list = nullptr;
  for (const auto& line : lines)
    list = curl_slist_append(list, line.c_str());
  const std::unique_ptr<curl_slist, void (*)(curl_slist*)> headers(list, curl_slist_free_all);
  curl_easy_setopt(curl.get(), CURLOPT_HTTPHEADER, headers.get());
  if (!form.empty())
    curl_easy_setopt(curl.get(), CURLOPT_POSTFIELDS, form.c_str());
  if (curl_easy_perform(curl.get()) != CURLE_OK)
    return {};
  curl_easy_getinfo(curl.get(), CURLINFO_RESPONSE_CODE, &reply.status);
  const char* location = nullptr;
  curl_easy_getinfo(curl.get(), CURLINFO_REDIRECT_URL, &location);
  reply.location = location == nullptr ? "" : location;
  return reply;
}

/// The form's hidden fields, as a browser would send them.
std::string fields_of(const std::string& page) {
  auto text = page.substr(page.find("<form method=\"post\" action=\"/partition\""));
  text = text.substr(0, text.find("</form>"));
  std::string form;
  const std::string begin = "<input type=\"hidden\" name=\"";
  for (std::size_t at = 0; (at = text.find(begin, at)) != std::string::npos;) {
    at += begin.size();
    const auto name = text.substr(at, text.find('"', at) - at);
    at = text.find("value=\"", at) + 7;
    form += (form.empty() ? "" : "&") + name + "=" + text.substr(at, text.find('"', at) - at);
  }
  return form;
}

/// A process that stands still for as long as the object lives.
class Stopped {
 public:
  explicit Stopped(pid_t pid) : pid_(pid) { REQUIRE(::kill(pid, SIGSTOP) == 0); }
  ~Stopped() { ::kill(pid_, SIGCONT); }
  Stopped(const Stopped&) = delete;
  Stopped& operator=(const Stopped&) = delete;

 private:
  pid_t pid_;
};

/// `pawl dashboard`, which serves the site's consumer from the database that `url` leads to.
class Page {
 public:
  explicit Page(Site& site, const std::string& url) {
    const auto address = fmt::format("127.0.0.1:{}", pawl::test::free_port());
    base = "http://" + address;
    site.more += fmt::format(
        "\n[monitoring]\ntrusted_proxy = \"127.0.0.1\"\nactions_token = \"{}\"\nhosts = "
        "[\"pawl.example.org\"]\n",
        kToken);
    child = std::make_unique<ChildProcess>(
        PAWL_PROGRAM,
        std::vector<std::string>{"dashboard", "--listen", address, "--config",
                                 site.config().string(), "--set", "postgres.url=" + url},
        ChildOptions{.output = folder_.path() / "page"});
    child->wait_for_output("The dashboard of", kDeadline);
  }

  std::string base;
  std::unique_ptr<ChildProcess> child;

 private:
  const TempDir folder_{"page"};
};

}  // namespace

TEST_CASE(
    "an action whose outcome is unknown is reported as such while PostgreSQL is unreachable") {
  Site site;
  REQUIRE(site.run({"run", "--drain"}).code == 0);
  PostgresProxy proxy(site.url);
  const Page page(site, proxy.url());
  const auto path =
      fmt::format("{}/partition?topic={}&partition=0&do=pause", page.base, site.topic);
  const auto form = fields_of(ask(path, "anna").body);
  const auto cut = proxy.cut(Moment::kAfter);
  proxy.refuse_connections(true);
  const auto reply = ask(page.base + "/partition", "anna", form + "&reason=x");
  cut.wait(kDeadline);
  CHECK(reply.status == 409);
  CHECK_THAT(reply.body, ContainsSubstring("was stored is unknown") &&
                             !ContainsSubstring("Nothing was changed"));
  CHECK(site.sql("SELECT state FROM pawl.processed_kafka_offsets") == "paused");
}

TEST_CASE("a person is named once, by the letters that the proxy sends") {
  Site site;
  REQUIRE(site.run({"run", "--drain"}).code == 0);
  const Page page(site, site.url);
  const auto url = page.base + "/";
  CHECK_THAT(ask(url, "ann%61").body, ContainsSubstring("ann%61") && !ContainsSubstring("anna"));
  const auto two = ask(url, "anna", "", {"X-Forwarded-User: bert"});
  CHECK(two.status == 400);
  CHECK_THAT(two.body, ContainsSubstring("The request has the header X-Forwarded-User twice"));
  CHECK(ask(url, "anna", "", {"Content-Encoding: br"}).status == 415);
}

TEST_CASE("the page is served by names of this process's alone, and says how to add one") {
  Site site;
  REQUIRE(site.run({"run", "--drain"}).code == 0);
  const Page page(site, site.url);
  const auto url = page.base + "/";
  const auto other = ask(url, "", "", {"Host: evil.example:80"});
  CHECK(other.status == 403);
  CHECK_THAT(other.body, ContainsSubstring("monitoring.hosts = [&quot;evil.example&quot;]"));
  CHECK(ask(url, "", "", {"Host: pawl.example.org:80"}).status == 200);
  CHECK(ask(url, "anna", "", {"Host: outer.example.org"}).status == 200);
}

TEST_CASE(
    "wrong tokens behind the proxy lock out whom they came from, and no browser that is known") {
  Site site;
  REQUIRE(site.run({"run", "--drain"}).code == 0);
  const Page page(site, site.url);
  const auto sign_in = [&](const std::string& token, const std::vector<std::string>& headers) {
    return ask(page.base + "/sign-in", "", "name=anna&token=" + token, headers);
  };
  const std::string right = "a+token+of+the+proxy%27s";
  const std::string eve = "X-Forwarded-For: 192.0.2.1";
  const auto first = sign_in(right, {eve});
  REQUIRE(first.status == 303);
  const auto begin = first.head.find("pawl_browser_");
  REQUIRE(begin != std::string::npos);
  const auto known = "Cookie: " + first.head.substr(begin, first.head.find(';', begin) - begin);
  for (int i = 0; i < 10; ++i)
    CHECK(sign_in("wrong", {eve}).status == 403);
  CHECK(sign_in(right, {eve}).status == 429);
  CHECK(sign_in(right, {"X-Forwarded-For: 192.0.2.2"}).status == 303);
  CHECK(sign_in(right, {"X-Forwarded-For: 192.0.2.2, 192.0.2.1"}).status == 429);
  CHECK(sign_in(right, {eve, known}).status == 303);
}

TEST_CASE("partitions without a stored offset are on the page, and the lag is unknown") {
  Site site(2);
  REQUIRE(site.run({"run", "--drain"}).code == 0);
  site.sql("DELETE FROM pawl.processed_kafka_offsets WHERE partition = 1");
  const Page page(site, site.url);
  std::string body;
  wait_until(
      [&] {
        body = ask(page.base + "/", "").body;
        return body.find("No offset is stored for") != std::string::npos;
      },
      kDeadline, "the page to show the other partition");
  INFO(body);
  CHECK_THAT(body, ContainsSubstring("No offset is stored for " + site.topic + "[1]."));
  CHECK_THAT(body.substr(body.find(">Lag<"), 200), ContainsSubstring("unknown"));
}

TEST_CASE("the lag stays known while messages arrive") {
  Site site;
  site.pay_many(0, "first", 1);
  REQUIRE(site.run({"run", "--drain"}).code == 0);
  const Page page(site, site.url);
  const auto lag = [&] {
    const auto body = ask(page.base + "/", "").body;
    const auto begin = body.find("<span>Lag</span>");
    return begin == std::string::npos ? "no lag"
                                      : body.substr(begin, body.find("</b>", begin) - begin);
  };
  wait_until([&] { return lag() == "<span>Lag</span><b>0"; }, kDeadline, "the lag to be known");
  // The stored offset passes the end of the log that the page has seen.
  site.pay_many(0, "more", 3);
  REQUIRE(site.run({"run", "--drain"}).code == 0);
  CHECK_THAT(lag(), !ContainsSubstring("unknown"));
}

TEST_CASE("a page that meets a kept session that was ended is read by a new one") {
  Site site;
  REQUIRE(site.run({"run", "--drain"}).code == 0);
  const Page page(site, site.url);
  REQUIRE(ask(page.base + "/", "anna").status == 200);
  const std::string sessions =
      " FROM pg_stat_activity WHERE datname = current_database() AND application_name = 'pawl "
      "command'";
  REQUIRE(site.sql("SELECT count(pg_terminate_backend(pid)) > 0" + sessions) == "t");
  site.wait_for_sql("SELECT count(*)" + sessions, "0");
  const auto reply = ask(page.base + "/", "anna");
  INFO(reply.body);
  CHECK(reply.status == 200);
}

TEST_CASE("the page ends at once, though it looks at a database that does not answer") {
  Site site;
  REQUIRE(site.run({"run", "--drain"}).code == 0);
  pqxx::connection connection(site.url);
  pqxx::work holding(connection);
  holding.exec("LOCK TABLE pawl.processed_kafka_offsets");
  site.postgres_lines = "lock_timeout = \"10m\"\n";
  const Page page(site, site.url);
  const std::string waiting =
      " FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'";
  site.wait_for_sql("SELECT count(*)" + waiting, "1");
  const pid_t backend = std::stoi(site.sql("SELECT min(pid)" + waiting));
  const Stopped stopped(backend);
  REQUIRE(site.sql("SELECT count(*)" + waiting) == "1");
  page.child->kill(SIGTERM);
  // Its session waits for longer.
  CHECK(page.child->wait(60s) == ExitStatus{.code = 0, .signal = {}});
}

TEST_CASE("a halted message is skipped on the page of the process that has it, and once only") {
  Site site;
  site.pay(0, "bad", "stranger", "1");
  site.pay_many(0, "good", 2);
  site.sql("ALTER TABLE ledger ADD CONSTRAINT known CHECK (account <> 'stranger')");
  const auto port = pawl::test::free_port();
  site.more += fmt::format(
      "\n[monitoring]\nlisten = \"127.0.0.1:{}\"\ntrusted_proxy = \"127.0.0.1\"\nactions_token = "
      "\"{}\"\n",
      port, kToken);
  const auto child = site.start({"--set", "failures.max_attempts=1"});
  site.wait_for_sql("SELECT state FROM pawl.processed_kafka_offsets", "halted");
  const auto base = fmt::format("http://127.0.0.1:{}", port);

  // The proxy names nobody: read-only.
  const auto reader = ask(base + "/", "");
  CHECK(reader.status == 200);
  CHECK_THAT(reader.body, ContainsSubstring(site.topic) && ContainsSubstring("halted") &&
                              !ContainsSubstring("Skip…"));
  const auto path = fmt::format("{}/partition?topic={}&partition=0&do=skip", base, site.topic);
  const auto page = ask(path, "anna");
  REQUIRE_THAT(page.body, ContainsSubstring("@0?"));
  const auto form = fields_of(page.body);
  CHECK(ask(base + "/partition", "", form + "&reason=x").status == 403);
  CHECK(ask(base + "/partition", "bert", form + "&reason=x").status == 403);
  CHECK(ask(base + "/partition", "anna", form + "&reason=%20").status == 409);
  CHECK(site.sql("SELECT count(*) FROM pawl.skipped_messages") == "0");

  const auto skipped = ask(base + "/partition", "anna", form + "&reason=ticket+7");
  INFO(skipped.body);
  CHECK(skipped.status == 303);
  site.wait_for_stored(0, 2);
  CHECK(site.sql("SELECT reason || ' ' || kafka_offset FROM pawl.skipped_messages") ==
        "by anna (dashboard): ticket 7 0");
  CHECK_THAT(ask(skipped.location, "anna").body, ContainsSubstring("@0 is skipped"));
  // Readers see the cause of the halt, but not who acted, and why.
  CHECK_THAT(ask(base + "/history", "anna").body, ContainsSubstring("ticket 7"));
  CHECK_THAT(ask(base + "/history", "").body,
             ContainsSubstring("violates check constraint") && ContainsSubstring(">skip<") &&
                 !ContainsSubstring("ticket 7") && !ContainsSubstring("by anna"));
  CHECK_THAT(ask(base + "/keys?key=bad", "").body, !ContainsSubstring("Claims of the key"));
  CHECK_THAT(ask(base + "/dead-letters?record_key=bad", "").body, ContainsSubstring("omitted"));

  const auto again = ask(base + "/partition", "anna", form + "&reason=ticket+7");
  CHECK(again.status == 409);
  CHECK_THAT(again.body, ContainsSubstring("has changed: it is running"));
  CHECK(site.sql("SELECT count(*) FROM pawl.skipped_messages") == "1");
  // The lag is read from Kafka in the background.
  wait_until(
      [&] {
        return ask(base + "/", "").body.find("<td class=\"number\">0</td>") != std::string::npos;
      },
      kDeadline, "the lag to be known");
  CHECK(ask(base + "/live", "").status == 200);
  child->kill(SIGTERM);
  CHECK(child->wait(kDeadline) == ExitStatus{.code = 0, .signal = {}});
}
