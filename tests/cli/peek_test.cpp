#include <nlohmann/json.hpp>

#include "prelude.hpp"
#include "site.hpp"

TEST_CASE("peek shows the message that halts: headers, key and value, within a bound") {
  Site site;
  site.pay(0, "fine", "a", "1");
  {
    KafkaProducer producer(site.bootstrap);
    producer.send(site.topic, {.key = std::string("\0\x01", 2),
                               .value = R"({"account": "a", "amount": "no number", "big": 1.10})",
                               .headers = {{"event-id", "bad"}, {"empty", std::nullopt}},
                               .partition = 0});
    producer.flush();
  }
  REQUIRE(site.run({"run", "--drain", "--set", "failures.max_attempts=1"}).code == 4);

  const std::vector<std::string> peek{"partitions", "peek",        "--topic",
                                      site.topic,   "--partition", "0"};
  const auto with = [&](std::vector<std::string> more) {
    more.insert(more.begin(), peek.begin(), peek.end());
    return more;
  };
  const auto shown = site.run(peek);
  INFO(shown.out << shown.err);
  CHECK(shown.code == 0);
  CHECK_THAT(shown.out, ContainsSubstring(site.topic + "[0]@1   20") &&
                            ContainsSubstring("header event-id: text, 3 bytes: bad\n") &&
                            ContainsSubstring("header empty: null\n") &&
                            ContainsSubstring("key: hex, 2 bytes: 0001\n") &&
                            ContainsSubstring("\"big\": 1.10}"));

  const auto json = nlohmann::json::parse(site.run(with({"--json", "--max-bytes", "7"})).out);
  CHECK(json.at("offset") == 1);
  CHECK(json.at("value").at("cut") == true);
  CHECK(json.at("value").at("text").get<std::string>().size() == 7);
  CHECK(json.at("value_bytes") == 52);
  CHECK(json.at("key") == std::string("\0\x01", 2));
  CHECK(json.at("headers")[0].at("value") == "bad");
  CHECK(json.at("headers")[1].at("value").is_null());

  const auto other = site.run(with({"--offset", "0"}));
  CHECK(other.code == 0);
  CHECK_THAT(other.out, ContainsSubstring("fine"));
  const auto beyond = site.run(with({"--offset", "99"}));
  CHECK(beyond.code == 2);
  CHECK_THAT(beyond.err,
             ContainsSubstring(site.topic + "[0]@99 cannot be read, because Kafka delivers offsets "
                                            "0 to 1 of this partition") &&
                 ContainsSubstring("\n  pawl offsets show --config "));
  const auto negative = site.run(with({"--offset", "-1"}));
  CHECK(negative.code == 2);
  CHECK_THAT(negative.err, ContainsSubstring("--offset"));
  // It only looks.
  CHECK(site.stored(0) == 0);
}

TEST_CASE("peek and try name the range if a place has no message") {
  Site site;
  site.pay_many(0, "e", 2);
  struct Case {
    std::string topic;
    const char* partition;
    const char* offset;
    std::string text;
  };
  const Case cases[] = {
      {site.topic, "0", "2",
       site.topic + "[0]@2 cannot be read, because Kafka delivers offsets 0 to 1"},
      {site.topic, "1", "0",
       site.topic + "[1] does not exist, because topic " + site.topic + " has 1 partition, 0."},
      {"shipmentz", "0", "0", "topic shipmentz does not exist in Kafka."},
  };
  for (const auto& [topic, partition, offset, text] : cases) {
    const std::vector<std::string> place{"--topic", topic,      "--partition",
                                         partition, "--offset", offset};
    for (const auto& command : {std::vector<std::string>{"partitions", "peek"}, {"try"}}) {
      auto arguments = command;
      arguments.insert(arguments.end(), place.begin(), place.end());
      const auto outcome = site.run(arguments);
      CHECK(outcome.code == 2);
      CHECK_THAT(outcome.err,
                 ContainsSubstring(text) && ContainsSubstring("\n  pawl offsets show --config "));
    }
  }

  // Without --offset, the end of the log is no mistake, and the text names it as well.
  REQUIRE(site.run({"run", "--drain"}).code == 0);
  const auto end = site.run({"partitions", "peek", "--topic", site.topic, "--partition", "0"});
  CHECK(end.code == 2);
  CHECK_THAT(end.err, ContainsSubstring(site.topic + "[0] has no message at or after offset 2, and "
                                                     "its log ends at offset 2."));
}

TEST_CASE("skipped list tells what was left out, where, when, by whom and why") {
  Site site(2);
  site.pay(1, "bad", "a", "\"no number\"");
  REQUIRE(site.run({"run", "--drain", "--set", "failures.max_attempts=1"}).code == 4);
  CHECK_THAT(site.run({"skipped", "list"}).out, ContainsSubstring("No message was skipped."));
  REQUIRE(site.run({"partitions", "skip", "--topic", site.topic, "--partition", "1", "--offset",
                    "0", "--because", "agreed with the producer"})
              .code == 0);

  const auto table = site.run({"skipped", "list"});
  CHECK(table.code == 0);
  CHECK_THAT(table.out, ContainsSubstring(site.topic) &&
                            ContainsSubstring("agreed with the producer") &&
                            ContainsSubstring("KEY") &&
                            ContainsSubstring("invalid input syntax for type bigint"));
  const auto json =
      nlohmann::json::parse(site.run({"skipped", "list", "--json"}).out).at("skipped_messages");
  REQUIRE(json.size() == 1);
  CHECK(json[0].at("partition") == 1);
  CHECK(json[0].at("offset") == 0);
  CHECK(json[0].at("key") == "a");
  CHECK(json[0].at("reason") == "agreed with the producer");
  CHECK(json[0].at("actor").is_string());
  CHECK_THAT(json[0].at("halt_cause").get<std::string>(),
             ContainsSubstring("invalid input syntax for type bigint"));
  CHECK(json[0].at("halt_code") == "message_failed");
  CHECK(json[0].at("halt_parameters").at("attempts") == 1);
  CHECK(nlohmann::json::parse(
            site.run({"skipped", "list", "--json", "--topic", site.topic, "--partition", "0"}).out)
            .at("skipped_messages")
            .empty());

  // Nothing had halted at this one.
  site.pay_many(0, "fine", 2);
  REQUIRE(site.run({"partitions", "pause", "--topic", site.topic, "--partition", "0"}).code == 0);
  REQUIRE(site.run({"partitions", "skip", "--topic", site.topic, "--partition", "0", "--offset",
                    "0", "--because", "sent twice"})
              .code == 0);
  const auto newest = nlohmann::json::parse(site.run({"skipped", "list", "--json"}).out)
                          .at("skipped_messages")
                          .at(0);
  CHECK(newest.at("reason") == "sent twice");
  CHECK(newest.at("halt_code").is_null());

  // It may quote the message.
  REQUIRE(site.run({"dlq", "erase", "--record-key", "a"}).code == 0);
  CHECK(site.sql("SELECT count(halt_cause) FROM pawl.skipped_messages") == "0");
}
