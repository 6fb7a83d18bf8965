#include "dashboard/access.hpp"

#include "dashboard/dashboard.hpp"
#include "prelude.hpp"

using namespace pawl::dashboard;

namespace {

const std::string kToken = "0123456789abcdef";

pawl::MonitoringOptions with_token() {
  pawl::MonitoringOptions options;
  options.actions_token = kToken;
  return options;
}

}  // namespace

TEST_CASE("a request is refused by what it says of where it comes from") {
  struct Case {
    Origin request;
    bool answered;
  };
  const auto [request, answered] = GENERATE(values<Case>({
      {{"GET", false, "BOX:9465", "", "", ""}, true},
      {{"GET", false, "evil.example:9465", "", "", ""}, false},
      {{"GET", true, "pawl.example.org", "", "", ""}, true},
      // A form of another site's.
      {{"POST", false, "localhost:1", "", "", ""}, true},
      {{"POST", false, "localhost:1", "http://localhost:1", "same-origin", ""}, true},
      {{"POST", false, "localhost:1", "http://localhost:2", "", ""}, false},
      {{"POST", false, "localhost:1", "http://evil.example", "", ""}, false},
      {{"POST", false, "localhost:1", "null", "", ""}, false},
      {{"POST", false, "localhost:1", "", "cross-site", ""}, false},
      {{"POST", false, "localhost:1", "", "same-site", ""}, false},
      {{"GET", false, "localhost:1", "", "cross-site", ""}, true},
      // Only the proxy is believed what it says of the outer name.
      {{"POST", true, "inner:1", "https://outer", "", "outer"}, true},
      {{"POST", true, "inner:1", "https://other", "", "outer"}, false},
      {{"POST", false, "box:1", "https://outer", "", "outer"}, false},
  }));
  CAPTURE(request.method, request.proxied, request.host, request.origin, request.fetch_site);
  CHECK(refusal(request, pawl::ops::HostNames("box", {})).has_value() != answered);
}

TEST_CASE("of what says who asks there is one") {
  const auto repeated = [](const std::string& twice) {
    return repeated_header(
        [&](const std::string& name) -> std::size_t { return name == twice ? 2 : 1; }, "X-Person");
  };
  for (const auto* name : {"Authorization", "X-Person", "X-Forwarded-Host", "Origin", "Cookie"})
    CHECK(repeated(name) == name);
  CHECK_FALSE(repeated("Accept"));
}

TEST_CASE("a path and its method are a page, a form or nothing") {
  CHECK(route("GET", "/") == Route::kPartitions);
  CHECK(route("HEAD", "/dead-letter") == Route::kLetter);
  CHECK(route("POST", "/dead-letter") == Route::kPostLetter);
  CHECK(route("POST", "/") == Route::kWrongMethod);
  CHECK(route("GET", "/sign-out") == Route::kWrongMethod);
  CHECK(route("GET", "/dead-letter/") == Route::kUnknown);
  CHECK(route("GET", "/assets/../x") == Route::kUnknown);
  for (const auto form : {Route::kPostPartition, Route::kPostLetter, Route::kPostSignOut})
    CHECK(needs_actor(form));
  for (const auto page : {Route::kPartitions, Route::kLetter, Route::kPostSignIn, Route::kStyle})
    CHECK_FALSE(needs_actor(page));
}

TEST_CASE("who has the token signs in by name, and is known by the cookie until it is old") {
  Access access(with_token());
  const auto now = Clock::now();
  const auto signed_in = access.sign_in({"::1"}, kToken, " anna\n ", now);
  REQUIRE(signed_in.outcome == Access::SignIn::kDone);
  const auto actor = access.find(false, "", signed_in.session, now);
  REQUIRE(actor);
  CHECK(actor->name == "anna\\x0a");
  CHECK(actor->form_key.size() == 64);
  CHECK(actor->form_key != signed_in.session);
  CHECK_FALSE(access.find(false, "anna", "", now));
  CHECK_FALSE(access.find(false, "anna", std::string(64, '0'), now));
  CHECK(access.find(false, "", signed_in.session,
                    now + Access::kSessionTime - std::chrono::seconds(1)));
  CHECK_FALSE(access.find(false, "", signed_in.session, now + Access::kSessionTime));
}

TEST_CASE("signing out ends a session, and only that") {
  Access access(with_token());
  const auto now = Clock::now();
  const auto one = access.sign_in({"::1"}, kToken, "one", now).session;
  const auto other = access.sign_in({"::1"}, kToken, "other", now).session;
  access.sign_out(one);
  CHECK_FALSE(access.find(false, "", one, now));
  CHECK(access.find(false, "", other, now)->name == "other");
}

TEST_CASE("wrong tokens are bounded, also against the right one, until their time is over") {
  Access access(with_token());
  const auto now = Clock::now();
  CHECK(access.sign_in({"::1"}, kToken, "", now).outcome == Access::SignIn::kNameless);
  for (std::size_t i = 0; i < Access::kMostTries; ++i)
    CHECK(access.sign_in({"::1"}, kToken + "x", "eve", now).outcome == Access::SignIn::kWrong);
  CHECK(access.sign_in({"::1"}, kToken, "anna", now).outcome == Access::SignIn::kTooOften);
  // Nobody shuts others out.
  CHECK(access.sign_in({"::2"}, kToken, "bert", now).outcome == Access::SignIn::kDone);
  CHECK(access.sign_in({"::1"}, kToken, "anna", now + Access::kTryTime).outcome ==
        Access::SignIn::kDone);
}

TEST_CASE("a browser that has signed in is known, and not locked out by others") {
  Access access(with_token());
  const auto now = Clock::now();
  const auto cookie = access.sign_in({"::1"}, kToken, "anna", now).browser;
  const auto anna = access.client("::1", "", cookie);
  REQUIRE(anna.known);
  // A cookie is not made up, nor one of another process.
  for (const auto& wrong : {std::string("x"), std::string("."), "x" + cookie, cookie + "0"}) {
    INFO(wrong);
    CHECK_FALSE(access.client("::1", "", wrong).known);
    CHECK(access.client("::1", "", wrong).name == "::1");
  }
  CHECK_FALSE(Access(with_token()).client("::1", "", cookie).known);
  for (std::size_t i = 0; i < Access::kMostTriesOfAll; ++i) {
    (void)access.sign_in({"::1"}, "wrong", "eve", now);
    (void)access.sign_in({"fd00::" + std::to_string(i)}, "wrong", "eve", now);
  }
  CHECK(access.sign_in({"::1"}, kToken, "anna", now).outcome == Access::SignIn::kTooOften);
  CHECK(access.sign_in({"::3"}, kToken, "bert", now).outcome == Access::SignIn::kTooOften);
  const auto again = access.sign_in(anna, kToken, "anna", now);
  CHECK(again.outcome == Access::SignIn::kDone);
  CHECK(access.client("::1", "", again.browser).name == anna.name);
  // It may not guess either.
  for (std::size_t i = 0; i < Access::kMostTries; ++i)
    CHECK(access.sign_in(anna, "wrong", "anna", now).outcome == Access::SignIn::kWrong);
  CHECK(access.sign_in(anna, kToken, "anna", now).outcome == Access::SignIn::kTooOften);
}

TEST_CASE("behind the trusted proxy a client is whom that connects for, by its own word") {
  auto options = with_token();
  options.trusted_proxy = "10.0.0.5";
  const Access access(options);
  struct Case {
    std::string peer;
    std::string forwarded_for;
    std::string client;
  };
  const auto [peer, forwarded_for, client] = GENERATE(values<Case>({
      {"10.0.0.5", "192.0.2.1", "192.0.2.1"},
      // What stands before its word came from the client.
      {"10.0.0.5", "198.51.100.9, 192.0.2.1", "192.0.2.1"},
      {"10.0.0.5", "198.51.100.9,::FFFF:192.0.2.1", "192.0.2.1"},
      {"10.0.0.5", "", "10.0.0.5"},
      {"10.0.0.5", "192.0.2.1, unknown", "10.0.0.5"},
      {"10.0.0.6", "192.0.2.1", "10.0.0.6"},
  }));
  CAPTURE(peer, forwarded_for);
  CHECK(access.client(peer, forwarded_for, "").name == client);
}

TEST_CASE("of too many sessions the oldest goes") {
  Access access(with_token());
  const auto now = Clock::now();
  const auto first = access.sign_in({"::1"}, kToken, "first", now).session;
  const auto second =
      access.sign_in({"::1"}, kToken, "second", now + std::chrono::seconds(1)).session;
  for (std::size_t i = 1; i < Access::kMostSessions; ++i)
    (void)access.sign_in({"::1"}, kToken, "more", now + std::chrono::seconds(2));
  CHECK_FALSE(access.find(false, "", first, now));
  CHECK(access.find(false, "", second, now));
}

TEST_CASE("without a token nobody signs in, also not with an empty one") {
  Access access({});
  CHECK_FALSE(access.by_token());
  CHECK(access.sign_in({"::1"}, "", "anna", Clock::now()).outcome == Access::SignIn::kWrong);
}

TEST_CASE("a proxy is known by its address and the token, and its header is believed then") {
  auto options = with_token();
  options.trusted_proxy = "10.0.0.5";
  Access access(options);
  const auto now = Clock::now();
  CHECK(access.is_proxy("10.0.0.5", "Bearer " + kToken));
  CHECK_FALSE(access.is_proxy("10.0.0.6", "Bearer " + kToken));
  for (const auto& authorization :
       {std::string(), std::string(kToken), std::string("Bearer "), "Bearer " + kToken + "x"})
    CHECK_FALSE(access.is_proxy("10.0.0.5", authorization));
  // However the address is written.
  for (const auto& [written, peer] : {std::pair{"0:0:0:0:0:0:0:1", "::1"},
                                      {"FD00::A", "fd00::a"},
                                      {"::ffff:10.0.0.5", "10.0.0.5"}}) {
    options.trusted_proxy = written;
    CHECK(Access(options).is_proxy(peer, "Bearer " + kToken));
  }
  options.actions_token.clear();
  CHECK_FALSE(Access(options).is_proxy("10.0.0.5", "Bearer "));
  CHECK_FALSE(Access(with_token()).is_proxy("", "Bearer " + kToken));

  const auto anna = access.find(true, "anna", "", now);
  REQUIRE(anna);
  CHECK(anna->name == "anna");
  CHECK_FALSE(anna->by_token);
  // A form's key is of one person, in one process.
  CHECK(access.find(true, "anna", "", now)->form_key == anna->form_key);
  CHECK(access.find(true, "bert", "", now)->form_key != anna->form_key);
  CHECK(Access(with_token()).find(true, "anna", "", now)->form_key != anna->form_key);
  CHECK_FALSE(access.find(true, " ", "", now));
  CHECK_FALSE(access.find(false, "anna", "", now));
}

TEST_CASE("a cookie is found among others") {
  CHECK(cookie("a=1; pawl_session=xy; b=2", "pawl_session") == "xy");
  CHECK(cookie("xpawl_session=no", "pawl_session") == "");
  CHECK(cookie("", "pawl_session") == "");
}
