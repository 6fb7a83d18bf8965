#include <fmt/format.h>

#include "prelude.hpp"
#include "site.hpp"

namespace {

/// What init has made of a topic with one message.
struct Made {
  std::string text;   ///< the configuration
  std::string table;  ///< which it proposes, and which holds the message
};

/// Sends the value, makes the configuration and its table, and runs it.
Made run_what_init_makes(Site& site, const std::string& value) {
  KafkaProducer producer(site.bootstrap);
  Record record;
  record.value = value;
  record.headers = {{"event-id", "e-1"}};
  producer.send(site.topic, record);
  producer.flush();
  const TempDir folder("init");
  const auto file = (folder.path() / "new.toml").string();
  const auto made =
      site.run_bare({"init", "--topic", site.topic, "--bootstrap-servers", site.bootstrap, "--url",
                     site.url, "--set", "kafka.group=" + site.group, "-o", file});
  INFO(made.out << made.err);
  REQUIRE(made.code == 0);
  const auto text = read_file(file);
  INFO(text);
  const auto create = text.substr(text.find("CREATE TABLE"));
  site.sql(create.substr(0, create.find('\n')));
  CHECK(site.run_bare({"check", "--config", file}).code == 0);
  const auto drained = site.run_bare({"run", "--drain", "--config", file});
  INFO(drained.err);
  CHECK(drained.code == 0);
  return {text, create.substr(13, create.find(" (") - 13)};
}

}  // namespace

TEST_CASE("init makes a configuration that check and try can read") {
  Site site;
  site.pay(0, "e-1", "a", "7");
  const TempDir folder("init");
  const auto file = (folder.path() / "new.toml").string();
  const std::vector<std::string> command{
      "init",   "--topic", site.topic, "--bootstrap-servers", site.bootstrap, "--url",
      site.url, "-o",      file};
  const auto made = site.run_bare(command);
  CHECK(made.code == 0);
  CHECK_THAT(made.err, ContainsSubstring("header event-id: text, 3 bytes: e-1"));
  const auto text = read_file(file);
  CHECK_THAT(text, ContainsSubstring("key = \"{header:event-id}\"") &&
                       ContainsSubstring("({/account}, {/amount}"));
  CHECK(site.run_bare({"config", "show", "--config", file}).code == 0);
  // Its table is that of the guess.
  const auto create = text.substr(text.find("CREATE TABLE"));
  site.sql(create.substr(0, create.find('\n')));
  const auto tried = site.run_bare(
      {"try", "--config", file, "--topic", site.topic, "--partition", "0", "--offset", "0"});
  CHECK(tried.code == 0);
  CHECK_THAT(tried.out, ContainsSubstring("1 inserted, 0 updated, 0 deleted"));

  const auto again = site.run_bare(command);
  CHECK(again.code == 1);
  CHECK_THAT(again.err, ContainsSubstring("--output " + file + ": File exists"));
  CHECK_THAT(
      site.run_bare({"init", "--topic", "nowhere", "--bootstrap-servers", site.bootstrap}).err,
      ContainsSubstring("--topic nowhere: the topic does not exist in Kafka at " + site.bootstrap));
}

TEST_CASE("init needs no file or variable that only the database needs") {
  Site site;
  const std::string url = "postgresql://app:${file:/no/such/file}@db/payments";
  const std::vector<std::string> command{"init", "--topic", site.topic, "--bootstrap-servers",
                                         site.bootstrap};
  const auto with = [&](const std::vector<std::string>& more) {
    auto arguments = command;
    arguments.insert(arguments.end(), more.begin(), more.end());
    return site.run_bare(arguments);
  };
  for (const auto& more : {std::vector<std::string>{"--url", url},
                           std::vector<std::string>{"--set", "postgres.url=" + url},
                           std::vector<std::string>{"--url", "postgresql://db/${PAWL_NOT_SET}"}}) {
    const auto made = with(more);
    INFO(made.err);
    CHECK(made.code == 0);
    CHECK_THAT(made.out, ContainsSubstring("pawl migrate up --database OWNER-URL\n") &&
                             ContainsSubstring("pawl migrate grants --role ROLE"));
  }
  CHECK_THAT(with({"--url", url}).out, ContainsSubstring("url = \"" + url + "\""));
  // What Kafka needs must be there, and problems name what was given.
  const auto password = with({"--set", "kafka.librdkafka.sasl.password=${file:/no/such/file}"});
  CHECK(password.code == 2);
  CHECK_THAT(password.err, ContainsSubstring("the file /no/such/file cannot be read"));
  const auto wrong = with({"--url", "mysql://db/p"});
  CHECK(wrong.code == 2);
  CHECK_THAT(wrong.err, ContainsSubstring("--url: postgres.url") && !ContainsSubstring("init:"));
}

TEST_CASE("init names columns by any key word that PostgreSQL has, and its table can be made") {
  const bool first_half = GENERATE(true, false);
  Site site;
  // All of them would be more columns than a row may have.
  const auto words =
      site.sql(fmt::format("SELECT '{{' || string_agg('\"' || word || '\": 1', ', ') || '}}' FROM "
                           "pg_get_keywords() WHERE (word < 'm') = {}",
                           first_half));
  KafkaProducer producer(site.bootstrap);
  Record record;
  record.value = words;
  producer.send(site.topic, record);
  producer.flush();
  const auto made = site.run_bare(
      {"init", "--topic", site.topic, "--bootstrap-servers", site.bootstrap, "--url", site.url});
  INFO(made.out << made.err);
  REQUIRE(made.code == 0);
  const auto create = made.out.substr(made.out.find("CREATE TABLE"));
  site.sql(create.substr(0, create.find('\n')));
  CHECK_THAT(made.out, ContainsSubstring(first_half ? "\"limit\" bigint" : "\"order\" bigint"));
}

TEST_CASE("what init makes of a message with odd members stores each of them") {
  Site site;
  const auto made = run_what_init_makes(
      site,
      R"({"id":7,"active?":true,"a|b":"x","a-b":"y","quo\"te":null,"":[1],"c{d}":{"e":1},)"
      R"("back\\slash":12345678901234567890,"${HOME}":"z","nul":"\u0000","nested":["\u0000"]})");
  CHECK_THAT(made.text, ContainsSubstring("surrogate pair: \"nul\"\n"));
  CHECK(site.sql("SELECT row_to_json(t) FROM " + made.table + " t") ==
        R"({"id":7,"active_":true,"a_b":"x","a_b_2":"y","quo_te":null,"_":[1],"c_d_":{"e": 1},)"
        R"("back_slash":12345678901234567890,"__h_o_m_e_":"z","nested":["\u0000"]})");
}

TEST_CASE("what init makes of a topic that is not JSON stores each value byte by byte") {
  Site site;
  const std::string value =
      GENERATE(std::string(R"(C:\temp)"), std::string(R"(\x4142)"), std::string("\0\xff avro", 7));
  const auto made = run_what_init_makes(site, value);
  std::string hex;
  for (const char c : value)
    hex += fmt::format("{:02x}", static_cast<unsigned char>(c));
  CHECK(site.sql("SELECT encode(value, 'hex') FROM " + made.table) == hex);
}
