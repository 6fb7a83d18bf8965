// The dashboard under `/` of [monitoring], in `pawl run` with real Kafka: by a proxy's header.
#include <curl/curl.h>
#include <fmt/format.h>

#include <csignal>
#include <random>

#include "prelude.hpp"
#include "site.hpp"

namespace {

struct Reply {
  long status = 0;
  std::string body;
  std::string location;
};

std::size_t append(const char* data, std::size_t size, std::size_t count, void* to) {
  static_cast<std::string*>(to)->append(data, size * count);
  return size * count;
}

constexpr const char* kToken = "a token of the proxy's";

/// A browser behind the proxy, which the test is. `form` empty: GET.
Reply ask(const std::string& url, const std::string& actor, const std::string& form = "") {
  const std::unique_ptr<CURL, void (*)(CURL*)> curl(curl_easy_init(), curl_easy_cleanup);
  Reply reply;
  curl_easy_setopt(curl.get(), CURLOPT_URL, url.c_str());
  curl_easy_setopt(curl.get(), CURLOPT_TIMEOUT_MS, 60000L);
  curl_easy_setopt(curl.get(), CURLOPT_WRITEFUNCTION, append);
  curl_easy_setopt(curl.get(), CURLOPT_WRITEDATA, &reply.body);
  const std::unique_ptr<curl_slist, void (*)(curl_slist*)> headers(
      curl_slist_append(curl_slist_append(nullptr, ("X-Forwarded-User: " + actor).c_str()),
                        fmt::format("Authorization: Bearer {}", kToken).c_str()),
      curl_slist_free_all);
  if (!actor.empty())
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

}  // namespace

TEST_CASE("a halted message is skipped on the page of the process that has it, and once only") {
  Site site;
  site.pay(0, "bad", "stranger", "1");
  site.pay_many(0, "good", 2);
  site.sql("ALTER TABLE ledger ADD CONSTRAINT known CHECK (account <> 'stranger')");
  std::random_device random;
  const auto port = 12000 + random() % 20000;
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
                              !ContainsSubstring("Skip"));
  const auto path = fmt::format("{}/partition?topic={}&partition=0&do=skip", base, site.topic);
  const auto page = ask(path, "anna");
  REQUIRE_THAT(page.body, ContainsSubstring("Skip offset 0 of"));
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
  CHECK_THAT(ask(skipped.location, "anna").body, ContainsSubstring("Offset 0 of"));

  const auto again = ask(base + "/partition", "anna", form + "&reason=ticket+7");
  CHECK(again.status == 409);
  CHECK_THAT(again.body, ContainsSubstring("is running meanwhile"));
  CHECK(site.sql("SELECT count(*) FROM pawl.skipped_messages") == "1");
  // What only Kafka knows comes by itself.
  wait_until(
      [&] {
        return ask(base + "/", "").body.find("<td class=\"number\">0</td>") != std::string::npos;
      },
      kDeadline, "the lag to be known");
  CHECK(ask(base + "/live", "").status == 200);
  child->kill(SIGTERM);
  CHECK(child->wait(kDeadline) == ExitStatus{.code = 0, .signal = {}});
}
