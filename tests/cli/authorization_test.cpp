#include <csignal>
#include <nlohmann/json.hpp>
#include <pqxx/pqxx>

#include "prelude.hpp"
#include "site.hpp"

namespace {

/// A broker that denies what it is told to, and a consumer of two of its topics.
class TwoTopics {
 public:
  TwoTopics() {
    site.bootstrap = broker.bootstrap();
    broker.create_topic(site.topic, 1);
    broker.create_topic(kOther, 1);
    site.kafka_lines = "topic_check_interval = \"200ms\"\n";
    site.more = std::string("[[handler]]\ntopics = [\"") + kOther + "\"]\n" + site.handler +
                "[alerts]\nnotify_channel = \"told\"\n";
  }

  void pay_other(const std::string& prefix, int count) {
    const auto topic = std::exchange(site.topic, kOther);
    site.pay_many(0, prefix, count);
    site.topic = topic;
  }

  static constexpr const char* kOther = "other";
  KafkaBroker broker{
      {.settings = {"authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer",
                    "allow.everyone.if.no.acl.found=true"}}};
  Site site;
};

/// The alerts of one kind that were sent since it began to listen.
class Alerts {
 public:
  explicit Alerts(const std::string& url) : connection_(url) {
    connection_.listen("told", [this](const pqxx::notification& notification) {
      alerts_.push_back(nlohmann::json::parse(notification.payload.c_str()));
    });
  }
  nlohmann::json wait_for(const std::string& kind) {
    nlohmann::json found;
    wait_until(
        [&] {
          connection_.get_notifs();
          for (const auto& alert : alerts_) {
            if (alert.at("kind") == kind)
              found = alert;
          }
          return !found.is_null();
        },
        kDeadline, "an alert " + kind);
    return found;
  }

 private:
  pqxx::connection connection_;
  std::vector<nlohmann::json> alerts_;
};

}  // namespace

TEST_CASE("a topic that is not authorised at the start holds up no other, and is named") {
  TwoTopics two;
  auto& site = two.site;
  site.pay_many(0, "e", 3);
  two.pay_other("o", 3);
  two.broker.deny_topic(TwoTopics::kOther);

  const auto check = site.run({"check"});
  INFO(check.out);
  CHECK(check.code == 1);
  CHECK_THAT(check.out,
             ContainsSubstring("Kafka           FAIL  Kafka denies access to topic other: ") &&
                 ContainsSubstring("authorization") &&
                 ContainsSubstring("1 topic, 1 partition: " + site.topic) &&
                 ContainsSubstring("\n1 check failed.\n"));

  Alerts alerts(site.url);
  const auto child = site.start();
  site.wait_for_stored(0, 2);
  const auto alert = alerts.wait_for("topic-access-denied");
  CHECK(alert.at("topic") == "other");
  CHECK_THAT(alert.at("msg").get<std::string>(), ContainsSubstring("authorization"));
  child->wait_for_output("Kafka denies access to topic other", kDeadline);

  const auto status = site.run({"status", "--json"});
  INFO(status.out << status.err);
  CHECK(status.code == 1);
  const auto json = nlohmann::json::parse(status.out);
  CHECK(json.at("kafka_problem").is_null());
  REQUIRE(json.at("access_denied_topics").size() == 1);
  CHECK(json.at("access_denied_topics")[0].at("topic") == "other");
  CHECK(json.at("partitions")[0].at("lag") == 0);
  CHECK(json.at("missing_topics").empty());
  CHECK_THAT(site.run({"status"}).out, ContainsSubstring("Kafka denies access to topic other"));

  two.broker.permit_topic(TwoTopics::kOther);
  site.wait_for_sql("SELECT count(*) FROM ledger", "6");
  child->wait_for_output(" topic_access_restored ", kDeadline);
}

TEST_CASE("a topic that is denied while it is consumed is named, and goes on once permitted") {
  TwoTopics two;
  auto& site = two.site;
  site.pay_many(0, "e", 3);
  two.pay_other("o", 3);
  Alerts alerts(site.url);
  const auto child = site.start();
  site.wait_for_sql("SELECT count(*) FROM ledger", "6");

  two.broker.deny_topic(TwoTopics::kOther);
  CHECK(alerts.wait_for("topic-access-denied").at("topic") == "other");
  site.pay_many(0, "later", 3);
  site.wait_for_stored(0, 5);
  const auto status = nlohmann::json::parse(site.run({"status", "--json"}).out);
  CHECK(status.at("kafka_problem").is_null());
  CHECK(status.at("access_denied_topics").size() == 1);

  two.broker.permit_topic(TwoTopics::kOther);
  two.pay_other("o-later", 3);
  site.wait_for_sql("SELECT count(*) FROM ledger", "12");
  child->kill(SIGTERM);
  CHECK(child->wait(kDeadline) == ExitStatus{.code = 0, .signal = {}});
}

// Membership is proven by commits, which Kafka refuses for a topic that may not be read.
TEST_CASE("a session that is lost beside a topic that may not be read comes back for the others") {
  TwoTopics two;
  auto& site = two.site;
  site.pay_many(0, "e", 3);
  two.pay_other("o", 3);
  // Both topics in the hands of one.
  const auto child = site.start({"--set", "consumer.workers=1"});
  site.wait_for_sql("SELECT count(*) FROM ledger", "6");

  two.broker.allow_only_describing(TwoTopics::kOther);
  child->wait_for_output("Grant the user of this process READ", kDeadline);
  site.sql(
      "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity"
      " WHERE datname = current_database() AND pid <> pg_backend_pid()");
  site.pay_many(0, "later", 3);
  site.wait_for_stored(0, 5);

  two.broker.permit_topic(TwoTopics::kOther);
  two.pay_other("o-later", 3);
  site.wait_for_sql("SELECT count(*) FROM ledger", "12");
  child->kill(SIGTERM);
  CHECK(child->wait(kDeadline) == ExitStatus{.code = 0, .signal = {}});
}
