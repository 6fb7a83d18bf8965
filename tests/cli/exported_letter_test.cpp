#include "dead_letters/exported_letter.hpp"

#include "prelude.hpp"

using pawl::cli::exported;
using pawl::cli::imported;
using pawl::cli::Json;

namespace {

Json line() {
  ledger::DeadLetter letter;
  letter.partition = {"payments", 2};
  letter.offset = 9'223'372'036'854'775'807;
  letter.topic_id = "KbqG5g";
  letter.leader_epoch = 7;
  letter.timestamp = Timestamp{5ms};
  letter.status = "dead";
  letter.reason = "error";
  letter.idempotency_key = "e-1";
  letter.attempts = 3;
  letter.payload = "complete";
  letter.died_at = "2026-01-31T00:00:00Z";
  letter.record_key = "\0\xff"s;
  letter.record_value = "";
  letter.value_bytes = 0;
  letter.headers = {{"caf\xe9", "v"}, {"none", std::nullopt}};
  return exported(letter);
}

}  // namespace

TEST_CASE("a dead letter that was exported is imported unchanged") {
  const auto written = line();
  CHECK(exported(imported(written.dump())) == written);
  auto unknown = written;
  unknown["headers"] = nullptr;
  CHECK(imported(unknown.dump()).headers_unknown);
}

TEST_CASE("a line whose values the table cannot store is no dead letter") {
  struct Row {
    const char* name;
    Json value;
    const char* problem;
  };
  const auto row = GENERATE(values<Row>({
      // Cut off, they would be the offset or partition of another message.
      {"partition", 4'294'967'296, "partition is not an integer of 32 bits"},
      {"partition", -1, "partition is negative"},
      {"partition", 1.5, "partition is not an integer"},
      {"partition", true, "partition is not an integer"},
      {"offset", 9'223'372'036'854'775'808U, "offset is not an integer of 64 bits"},
      {"offset", 1e300, "offset is not an integer"},
      {"leader_epoch", 4'294'967'296, "leader_epoch is not an integer of 32 bits"},
      {"attempts", 2'147'483'648, "attempts is not an integer of 32 bits"},
      {"value_bytes", "1", "value_bytes is not an integer"},
      {"timestamp", 18'446'744'073'709'551'615U, "timestamp is not an integer of 64 bits"},
      {"topic", "a\0b"s, "topic contains NUL"},
      {"error", "\0"s, "error contains NUL"},
      {"status", "due", "unknown status due"},
      {"payload", "half", "unknown payload half"},
      {"key", "QQ==\n\n\n\n", "not base64"},
      {"headers", Json::object(), "headers are not what pawl stores"},
  }));
  CAPTURE(row.name);
  auto written = line();
  written[row.name] = row.value;
  CHECK_THROWS_WITH(imported(written.dump()), ContainsSubstring(row.problem));
}

TEST_CASE("a line that is nested too deeply is no dead letter") {
  const std::string deep = std::string(200'000, '[') + std::string(200'000, ']');
  auto written = line().dump();
  const std::string headers = "\"headers\":";
  written.resize(written.find(headers) + headers.size());
  CHECK_THROWS_WITH(imported(written + deep + "}"), ContainsSubstring("nested too deeply"));
}
