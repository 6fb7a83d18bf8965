#include "handlers/http/request_template.hpp"
#include "handlers/http/shown_request.hpp"
#include "handlers/http/status_set.hpp"
#include "message/message_error.hpp"
#include "pawl/lease.hpp"
#include "prelude.hpp"

namespace {

using pawl::HttpOptions;
using pawl::handlers::CallMeaning;
using pawl::handlers::problems_of;
using pawl::handlers::RequestTemplate;
using pawl::handlers::StatusSet;

HttpOptions options(const std::string& url) {
  HttpOptions http;
  http.url = {url, ""};
  return http;
}

pawl::handlers::HttpRequest render(const HttpOptions& http, const std::string& value,
                                   const std::string& id = "e-1",
                                   const std::vector<pawl::Header>& more = {}) {
  std::vector<pawl::Header> headers{{"event-id", id}};
  headers.insert(headers.end(), more.begin(), more.end());
  pawl::MessageFields fields;
  fields.topic = "payments";
  fields.value = value;
  fields.headers = headers;
  const pawl::Message message(fields);
  pawl::message::JsonReader reader;
  pawl::message::JsonView json(reader, message);
  return RequestTemplate(http).render(message, json);
}

std::string problem(const HttpOptions& http) {
  const auto found = problems_of(http);
  return found.empty() ? "" : found.front().option + ": " + found.front().what;
}

}  // namespace

TEST_CASE("a message's values can reach no other part of the URL than their own") {
  struct Row {
    std::string url;
    std::string value;
    std::string expected;
  };
  const std::vector<Row> rows{
      {"https://a/b", "{}", "https://a/b"},
      {"https://a/b/{/x}", R"({"x":"c"})", "https://a/b/c"},
      {"https://a/b/{/x}/d", R"({"x":"c/d"})", "https://a/b/c%2Fd/d"},
      {"https://a/b?x={/x}", R"({"x":"../.."})", "https://a/b?x=..%2F.."},
      {"https://a/b?x={/x}", R"({"x":""})", "https://a/b?x="},
      {"https://a/b/{/x?}", R"({"x":""})", "https://a/b/"},
      {"https://a/b?x={/x}&y=1", R"({"x":"1&y=2#z"})", "https://a/b?x=1%26y%3D2%23z&y=1"},
      {"https://a/{/x}", R"({"x":"a b\r\nHost: c"})", "https://a/a%20b%0D%0AHost%3A%20c"},
      {"https://a/{/x}", R"({"x":"ü"})", "https://a/%C3%BC"},
      {"https://a/{/x}", R"({"x":1.50})", "https://a/1.50"},
      {"https://a/{/x?}/{header:event-id}", "{}", "https://a//e-1"},
      {"https://a/{{x}}", "{}", "https://a/{x}"},
  };
  for (const auto& row : rows) {
    CAPTURE(row.url, row.value);
    CHECK(render(options(row.url), row.value).url == row.expected);
  }
  for (const auto* step : {".", "..", "../admin", "a/../b", "a/..", "a\\\\..", ""}) {
    CAPTURE(step);
    CHECK_THROWS_AS(render(options("https://a/b/{/x}"), fmt::format(R"({{"x":"{}"}})", step)),
                    pawl::message::RenderError);
  }
  CHECK_THROWS_AS(render(options("https://a/b/{/x}"), "{}"), pawl::message::RenderError);
}

TEST_CASE("a URL whose host a message could choose is refused, and what is no URL") {
  struct Row {
    std::string url;
    std::string problem;
  };
  const std::vector<Row> rows{
      {"https://a", ""},
      {"http://a:8080/b?c={/d}", ""},
      {"https://[::1]:443/b", ""},
      {"ftp://a/b", "url: not an http or https URL with a literal host"},
      {"{/url}", "url: not an http or https URL with a literal host"},
      {"https://", "url: not an http or https URL with a literal host"},
      {"https:///b", "url: not an http or https URL with a literal host"},
      {"https://{/host}/b", "url: not an http or https URL with a literal host"},
      {"https://a.{/host}/b", "url: the host must not come from the message"},
      {"https://a{/more}", "url: the host must not come from the message"},
      {"https://user:secret@a/b", "url: contains a user or a password"},
      {"https://a/b#c", "url: contains a space, a control character, or a #"},
      {"https://a/b c", "url: contains a space, a control character, or a #"},
      {"https://a/b/../c", "url: contains \".\""},
      {"https://a/{/b}/./c", "url: contains \".\""},
      {"https://a/{/b} c", "url: contains a space, a control character, or a #"},
      {"https://a/{nothing}", "url: column "},
      // Literal braces hide nothing, and a brace of a name ends no placeholder.
      {"https://a/{{#}}", "url: contains a space, a control character, or a #"},
      {"https://a/{{/../}}", "url: contains \".\""},
      {R"(https://a/{header:x\}#})", ""},
      {"https://a:99999/b", "url: not an http or https URL with a literal host"},
      {"https://a:b/c", "url: not an http or https URL with a literal host"},
      {"https://{{a}}/b", "url: not an http or https URL with a literal host"},
  };
  for (const auto& row : rows) {
    CAPTURE(row.url);
    CHECK_THAT(problem(options(row.url)), StartsWith(row.problem));
    CHECK(problem(options(row.url)).empty() == row.problem.empty());
  }
}

TEST_CASE("headers hold what a message has, and no line end") {
  auto http = options("https://a/b");
  http.headers["X-Event"] = {"event {header:event-id}", ""};
  CHECK(render(http, "{}").headers == std::vector<std::string>{"X-Event: event e-1"});
  CHECK_THROWS_AS(render(http, "{}", "e\r\nEvil: 1"), pawl::message::RenderError);
  CHECK_THROWS_AS(render(http, "{}", "e\nEvil: 1"), pawl::message::RenderError);
  CHECK_THROWS_AS(render(http, "{}", std::string("e\0", 2)), pawl::message::RenderError);
  http.headers["No name"] = {"x", ""};
  CHECK(problem(http) == "headers.No name: not a header name");
  http.headers.clear();
  for (const auto* name : {"Content-Length", "host", "Transfer-Encoding", "expect"}) {
    http.headers = {{name, {"x", ""}}};
    CHECK_THAT(problem(http), EndsWith("the HTTP client sets this header"));
  }
  http.headers = {{"idempotency-key", {"x", ""}}};
  CHECK_THAT(problem(http), EndsWith("key_header sends this header"));
  http.key_header = "";
  CHECK(problem(http).empty());
  http.headers = {{"x-a", {"1", ""}}, {"X-A", {"2", ""}}};
  CHECK_THAT(problem(http), EndsWith("occurs twice with different case"));
}

TEST_CASE("methods that libcurl, or the other side, would take for another request") {
  auto http = options("https://a/b");
  for (const auto* method : {"post", "HEAD", "CONNECT", "OPTIONS", "", "POST x"}) {
    http.method = method;
    CHECK_THAT(problem(http), StartsWith("method: "));
  }
  http.method = "GET";
  CHECK(problem(http).empty());
  http.json = {"{}", ""};
  CHECK(problem(http) == "method: this method has no body");
}

TEST_CASE("of alternatives the first with a value keeps its type") {
  auto http = options("https://a/b");
  http.json = {
      R"({"a":"{/x|/y}","b":"{header:none|/y}","c":"{header:event-id|/y}","d":"{/z|/x?}"})", ""};
  CHECK(render(http, R"({"x":null,"y":17})").body == R"({"a":17,"b":17,"c":"e-1","d":null})");
}

TEST_CASE("JSON bodies keep the types of a message's values, and text stays text") {
  auto http = options("https://a/b");
  http.json = {
      R"({"event":"{header:event-id}","amount":"{/amount}","all":"{/all}","text":"for {/who}",
          "fixed":[1,true,null,"{{x}}"],"maybe":"{/nothing?}"})",
      ""};
  CHECK(problem(http).empty());
  const auto request = render(
      http, R"({"amount":12345678901234567890.10,"all":{"a":[1]},"who":"\"me\"\n"})", "e\"1");
  CHECK(request.body == R"({"all":{"a":[1]},"amount":12345678901234567890.10,"event":"e\"1",)"
                        R"("fixed":[1,true,null,"{x}"],"maybe":null,"text":"for \"me\"\n"})");
  CHECK(request.headers == std::vector<std::string>{"Content-Type: application/json"});
  CHECK_THROWS_AS(render(http, R"({"amount":1,"all":1})"), pawl::message::RenderError);
  CHECK_THROWS_AS(render(http, R"({"amount":1,"all":1,"who":"x"})", "\xff"),
                  pawl::message::RenderError);
}

TEST_CASE("a body is a template, and a content type of one's own counts") {
  auto http = options("https://a/b");
  http.body = {"<p>{/x}</p>", ""};
  http.headers["content-type"] = {"text/html", ""};
  const auto request = render(http, R"({"x":"a & b"})");
  CHECK(request.body == "<p>a & b</p>");
  CHECK(request.headers == std::vector<std::string>{"content-type: text/html"});
  http.json = {"{}", ""};
  CHECK(problem(http) == "body: json is also set");
}

TEST_CASE("bodies into which a value could reach further than its place are refused, or escaped") {
  auto http = options("https://a/b");
  for (const auto* json : {R"({{"id":"{/x}"}})", R"([{/x}])", R"(  {{ "id": {/x} }})"}) {
    http.body = {json, ""};
    CHECK_THAT(problem(http), StartsWith("body: is JSON"));
  }
  http.body = {"{/x}", ""};
  CHECK(problem(http).empty());
  http.headers["Content-Type"] = {"application/json", ""};
  CHECK_THAT(problem(http), StartsWith("body: is JSON"));
  http.headers["Content-Type"] = {"application/x-www-form-urlencoded", ""};
  http.body = {"a={/x}&b=1", ""};
  CHECK(problem(http).empty());
  CHECK(render(http, R"({"x":"1&b=2"})").body == "a=1%26b%3D2&b=1");
}

TEST_CASE("a host that changes under a running program is not called") {
  const pawl::testing::TempDir folder;
  const auto write = [&](const std::string& text) {
    std::ofstream(folder.path() / "base") << text;
  };
  write("https://a");
  HttpOptions http;
  http.url = {"${file:base}/b/{/x}", folder.path().string()};
  CHECK(problem(http).empty());
  const pawl::handlers::RequestTemplate request(http);
  write("https://a.evil");
  pawl::MessageFields fields;
  fields.value = R"({"x":1})";
  const pawl::Message message(fields);
  pawl::message::JsonReader reader;
  pawl::message::JsonView json(reader, message);
  CHECK_THROWS_AS(request.render(message, json), pawl::NotDone);
}

TEST_CASE("${...} is looked up for each request, and is no template") {
  const pawl::testing::TempDir folder;
  const auto write = [&](const std::string& text) {
    std::ofstream(folder.path() / "token") << text;
  };
  auto http = options("https://a/b");
  http.headers["Authorization"] = {"Bearer ${file:token}", folder.path().string()};
  http.headers["X"] = {"$${{no}} {{x}}", ""};
  write("first{/x}\n");
  CHECK(render(http, "{}").headers ==
        std::vector<std::string>{"Authorization: Bearer first{/x}", "X: ${no} {x}"});
  write("second");
  CHECK(render(http, "{}").headers.front() == "Authorization: Bearer second");
  std::filesystem::remove(folder.path() / "token");
  CHECK_THROWS_AS(render(http, "{}"), pawl::NotDone);
  // Of a file that came to hold more than a header can.
  write("third\r\nEvil: 1");
  CHECK_THROWS_AS(render(http, "{}"), pawl::NotDone);
}

TEST_CASE("lists of statuses") {
  CHECK(StatusSet::parse("")->contains(200) == false);
  CHECK(StatusSet::parse("2xx")->contains(200));
  CHECK(StatusSet::parse("2xx")->contains(299));
  CHECK_FALSE(StatusSet::parse("2xx")->contains(300));
  CHECK(StatusSet::parse("201, 404")->contains(404));
  for (const auto* wrong : {"20", "2x", "2xxx", "600", "0xx", "abc", "200,,201", "200;201", "-20",
                            "200,", "200, ", ",200", " "})
    CHECK_FALSE(StatusSet::parse(wrong).has_value());
}

TEST_CASE("what a status says of the call") {
  const pawl::handlers::StatusSets sets{
      *StatusSet::parse("2xx,409"), *StatusSet::parse("425,429,404"),
      *StatusSet::parse("408,409,425,429,5xx"), *StatusSet::parse("4xx,501")};
  struct Row {
    long status;
    CallMeaning meaning;
  };
  const std::vector<Row> rows{
      {200, CallMeaning::kDone},
      {204, CallMeaning::kDone},
      {409, CallMeaning::kDone},
      {301, CallMeaning::kPermanent},
      {404, CallMeaning::kNotDone},
      {501, CallMeaning::kPermanent},
      {408, CallMeaning::kUnknown},
      {500, CallMeaning::kUnknown},
      {504, CallMeaning::kUnknown},
      {425, CallMeaning::kNotDone},
      {429, CallMeaning::kNotDone},
      {503, CallMeaning::kUnknown},
      {422, CallMeaning::kPermanent},
      // No answer, and one before the answer.
      {0, CallMeaning::kNoAnswer},
      {103, CallMeaning::kNoAnswer},
      {999, CallMeaning::kPermanent},
  };
  for (const auto& [status, meaning] : rows) {
    CAPTURE(status);
    CHECK(meaning_of({.status = status}, sets) == meaning);
    // An answer that was cut off says as much, unless it is to be kept.
    const bool kept = meaning == CallMeaning::kDone;
    CHECK(meaning_of({.whole = false, .status = status}, sets) ==
          (kept ? CallMeaning::kNoAnswer : meaning));
    CHECK(meaning_of({.sent = false, .whole = false, .status = status}, sets) ==
          CallMeaning::kNotSent);
    CHECK(meaning_of({.sent = false, .connected = false, .status = status}, sets) ==
          CallMeaning::kUnreachable);
  }
}

TEST_CASE("a status is an outage only if outage lists it, and only of those that did nothing") {
  auto sets = pawl::handlers::StatusSets{*StatusSet::parse("2xx"), *StatusSet::parse("429,503"),
                                         *StatusSet::parse("5xx"), *StatusSet::parse("")};
  CHECK(meaning_of({.status = 503}, sets) == CallMeaning::kNotDone);
  sets.outage = *StatusSet::parse("5xx");
  CHECK(meaning_of({.status = 503}, sets) == CallMeaning::kOutage);
  CHECK(meaning_of({.status = 429}, sets) == CallMeaning::kNotDone);
  CHECK(meaning_of({.status = 500}, sets) == CallMeaning::kUnknown);

  struct Row {
    std::string not_done;
    std::string outage;
    bool right;
  };
  const std::vector<Row> rows{
      {"425,429", "", true},        {"425,429", "429", true}, {"425,429", "503", false},
      {"425,429,503", "503", true}, {"503", "5xx", false},    {"503", "nonsense", false},
  };
  for (const auto& row : rows) {
    CAPTURE(row.not_done, row.outage);
    auto http = options("https://api.example/a");
    http.not_done = row.not_done;
    http.outage = row.outage;
    CHECK(problems_of(http).empty() == row.right);
  }
}

TEST_CASE("the same place is one host, however its URL is written") {
  const std::vector<std::pair<std::string, std::string>> rows{
      {"https://api.example/a", "https://api.example"},
      {"https://API.example:443/b?c", "https://api.example"},
      {"https://api.example:80/", "https://api.example:80"},
      {"http://api.example:80", "http://api.example"},
      {"http://[::1]:8080/", "http://[::1]:8080"},
      {"http://api.example:8080/{/id}", "http://api.example:8080"},
  };
  for (const auto& [url, origin] : rows) {
    INFO(url);
    CHECK(RequestTemplate(options(url)).origin() == origin);
  }
}

TEST_CASE("a request is of its message's trace, unless the configuration names the header") {
  using Lines = std::vector<std::string>;
  constexpr std::string_view kParent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
  const auto lines = [&](const HttpOptions& http, const std::vector<pawl::Header>& headers) {
    return render(http, "{}", "e-1", headers).headers;
  };
  const auto parent = fmt::format("traceparent: {}", kParent);
  const auto http = options("https://a/b");
  CHECK(lines(http, {}) == Lines{});
  CHECK(lines(http, {{"traceparent", kParent}}) == Lines{parent});
  CHECK(lines(http, {{"traceparent", kParent}, {"tracestate", "a=1"}}) ==
        Lines{parent, "tracestate: a=1"});
  CHECK(lines(http, {{"traceparent", kParent}, {"tracestate", "a=1\r\nHost: c"}}) == Lines{parent});
  CHECK(lines(http, {{"traceparent", "00-1\r\nHost: c"}, {"tracestate", "a=1"}}) == Lines{});
  CHECK(lines(http, {{"tracestate", "a=1"}}) == Lines{});
  auto own = http;
  own.headers = {{"TraceParent", {"{header:event-id}", ""}}};
  CHECK(lines(own, {{"traceparent", kParent}, {"tracestate", "a=1"}}) == Lines{"TraceParent: e-1"});
}

TEST_CASE("of a request's URL, header, and body the secrets that are written out are not shown") {
  const auto shown = [](const HttpOptions& http) { return pawl::handlers::without_secrets(http); };
  struct Row {
    std::string written;
    std::string expected;
  };
  const std::vector<Row> urls{
      {"https://a/b", "https://a/b"},
      {"https://a/{/x?}/c", "https://a/{/x?}/c"},
      {R"(https://a/b?c={header:x\}y}d)", R"(https://a/b?c={header:x\}y}***)"},
      {"https://a/b?api_key=hunter2", "https://a/b?api_key=***"},
      {"https://a/b?hunter2", "https://a/b?***"},
      {"https://a/b?k=hunter2&id={/id}&t=${file:t}", "https://a/b?k=***&id={/id}&t=${file:t}"},
      {"https://a/{/x}?k=hunter2{/id}hunter2", "https://a/{/x}?k=***{/id}***"},
      {"https://a/b?k={{hunter2}}", "https://a/b?k=***"},
      {"https://a/b?k=${K}hunter2", "https://a/b?k=${K}***"},
  };
  for (const auto& row : urls)
    CHECK(shown(options(row.written)).url.written == row.expected);
  const std::vector<Row> headers{
      {"hunter2", "***"},
      {"Bearer hunter2", "***"},
      {"Bearer ${file:token}", "Bearer ${file:token}"},
      {"Bearer hunter2{/x}", "***{/x}"},
      {"hunter2 ${X}", "***${X}"},
      {"$${x}hunter2", "***{x}***"},
  };
  for (const auto& row : headers) {
    auto http = options("https://a/");
    http.headers["X-Anything"] = {row.written, ""};
    CHECK(shown(http).headers["X-Anything"].written == row.expected);
  }
  const std::vector<Row> json{
      {R"({"b":"{/x}","a":1})", R"({"b":"{/x}","a":1})"},
      {R"({"currency":"EUR","apiKey":"hunter2"})", R"({"currency":"EUR","apiKey":"***"})"},
      {R"({"auth":{"user":"a","n":[7,"{/x}","${X}",true]}})",
       R"({"auth":{"user":"***","n":["***","{/x}","${X}",true]}})"},
      {R"([{"client_secret":"hunter2{/x}"}])", R"([{"client_secret":"***{/x}"}])"},
  };
  for (const auto& row : json) {
    auto http = options("https://a/");
    http.json = {row.written, ""};
    CHECK(shown(http).json.written == row.expected);
    // A body that is JSON has no placeholders, and is read in the same way.
    http = options("https://a/");
    http.body = {row.written, ""};
    CHECK(shown(http).body.written == row.expected);
  }
  auto form = options("https://a/");
  form.headers["content-type"] = {"application/x-www-form-urlencoded", ""};
  form.body = {"grant=all&client_secret=hunter2&id={/id}&password={/p}", ""};
  CHECK(shown(form).body.written == "grant=all&client_secret=***&id={/id}&password={/p}");
  CHECK(shown(form).headers["content-type"].written == "application/x-www-form-urlencoded");
}

TEST_CASE("what ${...} stands for is not looked up where a request is only shown") {
  auto http = options("https://a/{/x}?k=${file:/nowhere}");
  http.headers["Authorization"] = {"Bearer ${NOT_SET}", ""};
  http.json = {R"({"a":"${file:/nowhere}","b":{"c":"$${x}"}})", ""};
  const auto shown = pawl::handlers::without_references(http);
  CHECK(shown.url.written == "https://a/{/x}?k=***");
  CHECK(shown.headers.at("Authorization").written == "Bearer ***");
  CHECK(shown.json.written == R"({"a":"***","b":{"c":"$${x}"}})");
}
