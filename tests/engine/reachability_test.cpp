// What is told of a server that is away: no server needed.
#include "engine/reachability.hpp"

#include "prelude.hpp"

using pawl::Event;
using pawl::Step;
using pawl::engine::Observers;
using pawl::engine::Reachability;

namespace {

class Told : public pawl::Observer {
 public:
  void on_event(const Event& event) noexcept override {
    text += std::string(to_string(event.step)) + ": " + std::string(event.detail) + "\n";
  }
  std::string text;
};

}  // namespace

TEST_CASE("the reason of an outage is what the latest attempt to connect found") {
  const auto told = std::make_shared<Told>();
  const Observers observers({told});
  Reachability database(observers, Step::kDatabaseUnreachable, Step::kDatabaseReachable);
  database.lost("terminating");
  CHECK(database.problem() == "terminating");
  database.failed("wrong password");
  CHECK(database.problem() == "wrong password");
  // The session of another worker.
  database.lost("terminating");
  CHECK(database.problem() == "wrong password");
  database.failed("connection refused");
  CHECK(database.problem() == "connection refused");
  database.answered();
  CHECK(database.problem().empty());
  database.lost("terminating");
  CHECK(database.problem() == "terminating");
  CHECK(told->text ==
        "database_unreachable: terminating\ndatabase_unreachable: wrong password\n"
        "database_unreachable: connection refused\ndatabase_reachable: \n"
        "database_unreachable: terminating\n");
}

TEST_CASE("an outage begins once, whatever its latest reason is") {
  const Observers observers({std::make_shared<Told>()});
  Reachability kafka(observers, Step::kKafkaUnreachable, Step::kKafkaReachable);
  CHECK_FALSE(kafka.outage());
  kafka.failed("timed out");
  const auto first = kafka.outage();
  REQUIRE(first);
  CHECK(first->why == "timed out");
  kafka.failed("connection refused");
  REQUIRE(kafka.outage());
  CHECK(kafka.outage()->since == first->since);
  CHECK(kafka.outage()->why == "connection refused");
  kafka.answered();
  CHECK_FALSE(kafka.outage());
}
