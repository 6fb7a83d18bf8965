#include <csignal>

#include "prelude.hpp"
#include "site.hpp"

TEST_CASE("by default a message waits for minutes for a row that comes late, over a restart too") {
  Site site;
  site.sql("ALTER TABLE ledger ADD FOREIGN KEY (account) REFERENCES accounts");
  site.pay(0, "late", "comes later", "1");
  const std::vector<std::string> usual{"--set", "failures.retry_for=5m"};
  // More than the five attempts that it once had in all.
  const auto more_than = [&](int attempts) {
    site.wait_for_sql(
        "SELECT attempts > " + std::to_string(attempts) + " FROM pawl.processed_kafka_offsets",
        "t");
  };
  {
    const auto child = site.start(usual);
    more_than(5);
    CHECK(site.sql("SELECT state FROM pawl.processed_kafka_offsets") == "running");
    CHECK_THAT(site.run({"status"}).out,
               ContainsSubstring("1 retrying") &&
                   ContainsSubstring("\nRETRYING\n  " + site.topic + "[0]@0 "));
    CHECK_THAT(child->output(), ContainsSubstring("(attempt 1 of "));
    child->kill(SIGTERM);
    CHECK(child->wait(kDeadline) == ExitStatus{.code = 0, .signal = {}});
  }
  const auto child = site.start(usual);
  more_than(6);
  site.sql("INSERT INTO accounts (id) VALUES ('comes later')");
  site.wait_for_stored(0, 0);
  CHECK(site.sql("SELECT count(*) FROM ledger") == "1");
}

TEST_CASE("a message that fails is tried for retry_for, or max_attempts times if that is sooner") {
  Site site(2);
  site.pay(0, "bad", "a", "\"no number\"");
  const auto drained = site.run({"run", "--drain", "--set", "failures.retry_for=1s"});
  CHECK(drained.code == 4);
  // One line for the first attempt, and how many more there were.
  CHECK_THAT(drained.err, ContainsSubstring("(attempt 1 of 6)") &&
                              !ContainsSubstring("(attempt 2 of 6)") &&
                              ContainsSubstring(" 5 more times"));
  CHECK(site.sql("SELECT attempts FROM pawl.processed_kafka_offsets WHERE partition = 0") == "6");
  site.pay(1, "bad", "a", "\"no number\"");
  CHECK(site.run({"run", "--drain", "--set", "failures.retry_for=5m", "--set",
                  "failures.max_attempts=2"})
            .code == 4);
  CHECK(site.sql("SELECT attempts FROM pawl.processed_kafka_offsets WHERE partition = 1") == "2");
}
