#include "kafka/refusals.hpp"

#include "prelude.hpp"

using namespace pawl::kafka;

TEST_CASE("servers that each refuse the client are waited for no longer") {
  using Verdict = Refusals::Verdict;
  struct Said {
    rd_kafka_resp_err_t code;
    const char* text;
  };
  struct Row {
    const char* servers;
    std::vector<Said> said;
    Verdict verdict;
  };
  constexpr auto kTransport = RD_KAFKA_RESP_ERR__TRANSPORT;
  constexpr auto kAuthentication = RD_KAFKA_RESP_ERR__AUTHENTICATION;
  const auto row = GENERATE_COPY(Catch::Generators::values<Row>({
      {"a:1", {}, Verdict::kOpen},
      {"a:1", {{kTransport, "a:1/bootstrap: refused"}}, Verdict::kUnlikely},
      {"a:1", {{RD_KAFKA_RESP_ERR__RESOLVE, "a:1/bootstrap: unknown"}}, Verdict::kUnlikely},
      {"a:1", {{kAuthentication, "sasl_ssl://a:1/bootstrap: no"}}, Verdict::kFinal},
      {"a:1", {{RD_KAFKA_RESP_ERR__SSL, "ssl://a:1/bootstrap: no"}}, Verdict::kFinal},
      {"a:1,b:1", {{kAuthentication, "a:1/bootstrap: no"}}, Verdict::kOpen},
      {"a:1,b:1",
       {{kAuthentication, "a:1/bootstrap: no"}, {kAuthentication, "a:1/bootstrap: again"}},
       Verdict::kOpen},
      {"a:1,b:1",
       {{kAuthentication, "a:1/bootstrap: no"}, {kTransport, "b:1/bootstrap: refused"}},
       Verdict::kUnlikely},
      {"a:1,b:1",
       {{kAuthentication, "a:1/bootstrap: no"}, {kAuthentication, "b:1/bootstrap: no"}},
       Verdict::kFinal},
      {"[::1]:1", {{kTransport, "[::1]:1/bootstrap: refused"}}, Verdict::kUnlikely},
      // What says nothing of the connection.
      {"a:1", {{RD_KAFKA_RESP_ERR__MAX_POLL_EXCEEDED, "a:1/bootstrap: late"}}, Verdict::kOpen},
      {"a:1", {{kTransport, "no server is named"}}, Verdict::kOpen},
  }));
  Refusals refusals(row.servers);
  for (const auto& [code, text] : row.said)
    refusals.note(code, text);
  CAPTURE(row.servers, row.said.size());
  CHECK(refusals.verdict() == row.verdict);
}
