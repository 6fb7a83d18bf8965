#include "kafka/oauth_token.hpp"
#include "prelude.hpp"

using namespace pawl::kafka;

namespace {

constexpr std::int64_t kNow = 1'700'000'000'000;

// {"alg":"none"} and {"sub":"app","exp":1700000060}, {"sub":"app"}, {"exp":1700000060.9}
const std::string kEnds = "eyJhbGciOiJub25lIn0.eyJzdWIiOiJhcHAiLCJleHAiOjE3MDAwMDAwNjB9.";
const std::string kEndless = "eyJhbGciOiJub25lIn0.eyJzdWIiOiJhcHAifQ.";
const std::string kNameless = "eyJhbGciOiJub25lIn0.eyJleHAiOjE3MDAwMDAwNjAuOX0.c2ln";

std::string problem(const std::string& printed) {
  try {
    (void)read_oauth_token(printed, kNow);
    return "";
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
}

}  // namespace

TEST_CASE("a token is read from a token response, or stands alone") {
  struct Row {
    std::string printed;
    std::string value;
    std::string principal;
    std::int64_t life;
  };
  const auto row = GENERATE(values<Row>({
      {R"({"access_token": "opaque", "expires_in": 120})", "opaque", "pawl", 120},
      {R"( {"token_type":"Bearer","access_token":"a.b","expires_in":"3599"} )"
       "\n",
       "a.b", "pawl", 3599},
      {R"({"access_token": ")" + kEndless + R"(", "expires_in": 5})", kEndless, "app", 5},
      // What ends first counts.
      {R"({"access_token": ")" + kEnds + R"(", "expires_in": 5})", kEnds, "app", 5},
      {R"({"access_token": ")" + kEnds + R"(", "expires_in": 5000})", kEnds, "app", 60},
      {kEnds + "\n", kEnds, "app", 60},
      {kNameless, kNameless, "pawl", 60},
  }));
  INFO(row.printed);
  const auto token = read_oauth_token(row.printed, kNow);
  CHECK(token.value == row.value);
  CHECK(token.principal == row.principal);
  CHECK(token.expires_ms == kNow + row.life * 1000);
  CHECK(token.extensions.empty());
}

TEST_CASE("SASL extensions come with a token response") {
  const auto token = read_oauth_token(
      R"({"access_token": "t", "expires_in": 9, "extensions": {"logicalCluster": "lkc-1"}})", kNow);
  CHECK(token.extensions ==
        std::vector<std::pair<std::string, std::string>>{{"logicalCluster", "lkc-1"}});
}

TEST_CASE("output that is not a token is rejected without quoting it") {
  const std::string neither =
      "it printed neither a JSON object with \"access_token\" nor a token alone";
  const std::string endless =
      "its token has no expiry. Print {\"access_token\": ..., \"expires_in\": SECONDS}, or a JWT "
      "with \"exp\"";
  struct Row {
    std::string printed;
    std::string problem;
  };
  const auto row = GENERATE_COPY(values<Row>({
      {"", "it printed nothing"},
      {" \n", "it printed nothing"},
      {"hunter2 hunter2", neither},
      {"hunter2\nhunter2", neither},
      {"\"hunter2\xc3\xa4\"", neither},
      {"hunter2", endless},
      {"hunter2.hunter2.hunter2", endless},
      {"a.!!!.hunter2", endless},
      {kEndless, endless},
      {R"({"access_token": "hunter2"})", endless},
      {R"({"access_token": "hunter2",)", "it printed a { that does not start a JSON object"},
      {R"({"error": "hunter2"})", "its JSON object has no \"access_token\""},
      {R"({"access_token": 5})", "its JSON object has no \"access_token\""},
      {R"({"access_token": "hunter2 x", "expires_in": 5})", neither},
      {R"({"access_token": "", "expires_in": 5})", neither},
      {R"({"access_token": "t", "expires_in": "hunter2"})",
       "its \"expires_in\" is not a number of seconds"},
      {R"({"access_token": "t", "expires_in": -5})",
       "its \"expires_in\" is not a number of seconds"},
      {R"({"access_token": "t", "expires_in": 1e300})",
       "its \"expires_in\" is not a number of seconds"},
      {R"({"access_token": "t", "expires_in": null})",
       "its \"expires_in\" is not a number of seconds"},
      {R"({"access_token": "t", "expires_in": 5, "extensions": {"auth": "hunter2"}})",
       "its \"extensions\" is not an object of strings with alphabetic names"},
      {R"({"access_token": "t", "expires_in": 5, "extensions": ["hunter2"]})",
       "its \"extensions\" is not an object of strings with alphabetic names"},
      {R"({"access_token": "t", "expires_in": 5, "extensions": {"a": "hunter2\n"}})",
       "its \"extensions\" is not an object of strings with alphabetic names"},
      // exp = 1
      {"e30.eyJleHAiOjF9.", "its token has already expired. Compare the clocks"},
  }));
  INFO(row.printed);
  CHECK(problem(row.printed) == row.problem);
}
