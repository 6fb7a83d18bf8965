// What pawl.acquire_lease and its like answer, on a real server.
#include "leases/store/postgres_leases.hpp"

#include <fmt/format.h>

#include <pqxx/pqxx>

#include "leases/store/view.hpp"
#include "ledger/idempotency_keys.hpp"
#include "pawl/errors.hpp"
#include "postgres/frame.hpp"
#include "prelude.hpp"

namespace {

using pawl::ledger::GivenBack;
using pawl::ledger::KeyLease;
using pawl::ledger::LeaseAnswer;
using How = LeaseAnswer::How;

/// One scope in a database of its own, and processes that ask for keys in it.
class Keys {
 public:
  Keys()
      : url_(PostgresServer::shared().create_database("leases")),
        leases_("pawl", settings(), 30s),
        session_(settings()) {
    execute("INSERT INTO pawl.consumers (cluster, group_id) VALUES ('c', 'g')");
    execute(
        "INSERT INTO pawl.consumer_topics (consumer_id, topic, partitions, start_policy)"
        " VALUES (1, 'payments', 1, 'earliest')");
    execute("INSERT INTO pawl.idempotency_scopes (name) VALUES ('s')");
    execute("INSERT INTO pawl.scope_sources (scope_id, source_id) VALUES (1, 1)");
  }

  LeaseAnswer acquire(const KeyLease& lease, std::int64_t payload = 1) {
    pawl::ledger::LeaseRequest request;
    request.lease = lease;
    request.subject = {payload, pawl::ledger::SourceId{1}, 0, 17};
    request.time = 30s;
    return leases_.acquire(session_, request);
  }
  bool give_back(const KeyLease& lease, GivenBack how, bool settled = false,
                 const Response& response = std::nullopt) {
    return leases_.give_back(session_, lease, how, settled, response);
  }
  /// "" where it is recorded; else the SQLSTATE.
  std::string record(const KeyLease& lease, const Response& response) {
    pawl::postgres::Frame frame(session_, {});
    pawl::postgres::Request request;
    leases_.record(request, lease, {1, pawl::ledger::SourceId{1}, 0, 17}, response, "");
    try {
      (void)frame.begin(request);
      keys_.name_open_transaction(request);
      frame.finish(request, {});
      return "";
    } catch (const pawl::postgres::Error& error) {
      return error.sqlstate();
    }
  }
  void expire() { execute("UPDATE pawl.leases SET lease_until = clock_timestamp()"); }
  void execute(const std::string& sql) {
    pqxx::connection connection(url_);
    pqxx::nontransaction(connection).exec(sql);
  }
  std::string value(const std::string& sql) {
    pqxx::connection connection(url_);
    return pqxx::nontransaction(connection).query_value<std::string>(sql);
  }
  pawl::postgres::Session& session() { return session_; }
  const pawl::ledger::PostgresLeases& leases() { return leases_; }
  const pawl::ledger::IdempotencyKeys& keys() { return keys_; }

 private:
  [[nodiscard]] pawl::postgres::SessionSettings settings() const {
    pawl::postgres::SessionSettings settings;
    settings.url = url_;
    return settings;
  }

  std::string url_;
  pawl::ledger::PostgresLeases leases_;
  pawl::ledger::IdempotencyKeys keys_{"pawl"};
  pawl::postgres::Session session_;
};

KeyLease lease(const std::string& owner, std::int64_t token) {
  return {{pawl::ledger::ScopeId{1}, "s"}, "k", owner, token};
}

}  // namespace

TEST_CASE("an attempt is known by its process until it is given back or recorded") {
  Keys keys;
  const auto attempted_by = [&] {
    return keys.leases().attempted_by(keys.session(), lease("", 0).scope, "k");
  };
  CHECK_FALSE(attempted_by());
  REQUIRE(keys.acquire(lease("a", 1)).how == How::kMine);
  CHECK(attempted_by() == "a");
  // As when the process has died.
  keys.expire();
  CHECK(attempted_by() == "a");
  REQUIRE(keys.acquire(lease("b", 2)).how == How::kMine);
  CHECK(attempted_by() == "b");
  REQUIRE(keys.give_back(lease("b", 2), GivenBack::kUnknown));
  CHECK_FALSE(attempted_by());
  REQUIRE(keys.acquire(lease("c", 3)).how == How::kMine);
  REQUIRE(keys.record(lease("c", 3), "done").empty());
  CHECK_FALSE(attempted_by());
}

TEST_CASE("of those that ask for a key one has it, until it gives it back or its time is over") {
  Keys keys;
  const auto one = keys.acquire(lease("a", 1));
  CHECK(one.how == How::kMine);
  CHECK(one.attempt == 1);
  CHECK_FALSE(one.unknown_for.has_value());
  // Its answer was lost: asked for again.
  const auto again = keys.acquire(lease("a", 1));
  CHECK(again.how == How::kMine);
  CHECK(again.attempt == 1);
  CHECK_FALSE(again.unknown_for.has_value());
  const auto other = keys.acquire(lease("b", 2));
  CHECK(other.how == How::kPending);
  CHECK(other.holder == "a");
  CHECK(other.wait > 20s);
  CHECK(other.wait <= 30s);
  // Of the same process, for another message.
  CHECK(keys.acquire(lease("a", 3)).how == How::kPending);
  keys.expire();
  const auto next = keys.acquire(lease("b", 4));
  CHECK(next.how == How::kMine);
  CHECK(next.attempt == 2);
  CHECK(next.unknown_for.has_value());
  CHECK(keys.record(lease("a", 1), "late") == "PW015");
  CHECK(keys.record(lease("b", 1), "another's token") == "PW015");
  CHECK(keys.record(lease("b", 4), "done") == "");
  CHECK(keys.acquire(lease("a", 5)).how == How::kFinished);
  CHECK(keys.value("SELECT count(*) FROM pawl.leases") == "0");
  CHECK(keys.value("SELECT convert_from(response, 'UTF8') FROM pawl.idempotency_keys") == "done");
}

// Fails where only the past counts as over: the key of a process that has died waits until the
// clock has caught up.
TEST_CASE("a lease from before the server's clock went back is over") {
  Keys keys;
  (void)keys.acquire(lease("a", 1));
  keys.execute("UPDATE pawl.leases SET lease_until = clock_timestamp() + interval '50 s'");
  CHECK(keys.acquire(lease("b", 2)).how == How::kPending);
  keys.execute("UPDATE pawl.leases SET lease_until = clock_timestamp() + interval '1 day'");
  const auto next = keys.acquire(lease("b", 2));
  CHECK(next.how == How::kMine);
  CHECK(next.attempt == 2);
  CHECK(next.unknown_for.has_value());
  // Whose lease lasts longer keeps it for as long.
  keys.execute(
      "UPDATE pawl.leases SET lease_until = clock_timestamp() + interval '1 day', lease_ms = "
      "86400000");
  CHECK(keys.acquire(lease("c", 3)).how == How::kPending);
}

TEST_CASE("expiry alone refuses no record") {
  Keys keys;
  (void)keys.acquire(lease("a", 1));
  keys.expire();
  CHECK(keys.record(lease("a", 1), "in time after all") == "");
}

TEST_CASE("what is given back says what is known, and may be given back again") {
  struct Row {
    GivenBack how;
    bool settled;
    std::uint32_t attempt;
    bool unknown;
  };
  // Behind an attempt that is unknown.
  const auto row =
      GENERATE(Row{GivenBack::kNotBegun, false, 2, true}, Row{GivenBack::kNotDone, false, 3, true},
               Row{GivenBack::kNotDone, true, 3, false}, Row{GivenBack::kUnknown, false, 3, true},
               Row{GivenBack::kUnknown, true, 3, true});
  CAPTURE(static_cast<int>(row.how), row.settled);
  Keys keys;
  (void)keys.acquire(lease("a", 1));
  keys.expire();
  (void)keys.acquire(lease("b", 2));
  CHECK_FALSE(keys.give_back(lease("a", 1), row.how, row.settled));
  CHECK(keys.give_back(lease("b", 2), row.how, row.settled));
  CHECK(keys.give_back(lease("b", 2), row.how, row.settled));
  const auto next = keys.acquire(lease("c", 3));
  CHECK(next.how == How::kMine);
  CHECK(next.attempt == row.attempt);
  CHECK(next.unknown_for.has_value() == row.unknown);
}

TEST_CASE("what was left is given back once it is there, and no transaction is waited for") {
  Keys keys;
  const std::atomic<bool> unwanted{false};
  const auto extender = keys.leases().make_extender(unwanted);
  // Its request comes late.
  CHECK_FALSE(extender->give_back({lease("a", 1), GivenBack::kNotBegun}));
  REQUIRE(keys.acquire(lease("a", 1)).how == How::kMine);
  CHECK_FALSE(extender->give_back({lease("a", 2), GivenBack::kNotBegun}));
  REQUIRE(keys.acquire(lease("a", 2)).how == How::kPending);
  {
    pawl::postgres::Session other(keys.session().settings());
    pawl::postgres::Frame frame(other, {});
    pawl::postgres::Request request;
    keys.leases().record(request, lease("a", 1), {1, pawl::ledger::SourceId{1}, 0, 17}, "x", "");
    (void)frame.begin(request);
    CHECK_FALSE(extender->give_back({lease("a", 1), GivenBack::kNotBegun}));
  }
  CHECK(extender->give_back({lease("a", 1), GivenBack::kNotBegun}));
  const auto next = keys.acquire(lease("a", 2));
  CHECK(next.how == How::kMine);
  CHECK(next.attempt == 1);
  CHECK_FALSE(next.unknown_for);
  CHECK(extender->give_back({lease("a", 2), GivenBack::kDone, false, "answer"}));
  const auto done = keys.acquire(lease("b", 3));
  CHECK(done.how == How::kDone);
  CHECK(done.response == "answer");
}

TEST_CASE("what is known to be done is recorded by the next attempt, which calls nothing") {
  Keys keys;
  (void)keys.acquire(lease("a", 1));
  CHECK(keys.give_back(lease("a", 1), GivenBack::kDone, false, "answer"));
  const auto next = keys.acquire(lease("b", 2));
  CHECK(next.how == How::kDone);
  CHECK(next.response == "answer");
  // It dies: that is as well known as before.
  keys.expire();
  const auto third = keys.acquire(lease("c", 3));
  CHECK(third.how == How::kDone);
  CHECK(third.attempt == 1);
  CHECK_FALSE(third.unknown_for.has_value());
}

TEST_CASE(
    "another payload under a key conflicts with a call that may have been done, and no other") {
  Keys keys;
  (void)keys.acquire(lease("a", 1), 1);
  CHECK(keys.acquire(lease("b", 2), 2).how == How::kPending);
  (void)keys.give_back(lease("a", 1), GivenBack::kNotDone);
  CHECK(keys.acquire(lease("b", 3), 2).how == How::kMine);
  (void)keys.give_back(lease("b", 3), GivenBack::kUnknown);
  const auto other = keys.acquire(lease("c", 4), 3);
  CHECK(other.how == How::kConflict);
  CHECK(other.holder == "payments[0]@17");
}

TEST_CASE("what a finishing transaction holds is neither waited for nor lost") {
  Keys keys;
  (void)keys.acquire(lease("a", 1));
  pawl::postgres::SessionSettings settings = keys.session().settings();
  pawl::postgres::Session other(settings);
  pawl::postgres::Frame frame(other, {});
  pawl::postgres::Request request;
  keys.leases().record(request, lease("a", 1), {1, pawl::ledger::SourceId{1}, 0, 17}, "x", "");
  (void)frame.begin(request);
  CHECK(keys.acquire(lease("b", 2)).how == How::kPending);
  const std::atomic<bool> unwanted{false};
  const auto extender = keys.leases().make_extender(unwanted);
  const auto extended = extender->extend({lease("a", 1)});
  CHECK(extended == std::vector{pawl::ledger::Extended::kBusy});
  keys.keys().name_open_transaction(request);
  frame.finish(request, {});
  CHECK(keys.acquire(lease("b", 3)).how == How::kFinished);
  CHECK(extender->extend({lease("a", 1)}) == std::vector{pawl::ledger::Extended::kLost});
}

TEST_CASE("an operator resolves what is unknown, and not what is in hand") {
  Keys keys;
  const pawl::ledger::LeaseView view("pawl", pawl::ledger::ConsumerId{1});
  (void)keys.acquire(lease("a", 1));
  auto found = view.list(keys.session(), {}, 10);
  REQUIRE(found.size() == 1);
  CHECK_THROWS_AS(view.resolve(keys.session(), found[0], true, "x"), pawl::FatalError);
  keys.expire();
  pawl::ledger::LeaseFilter unknown;
  unknown.unknown = true;
  found = view.list(keys.session(), unknown, 10);
  REQUIRE(found.size() == 1);
  CHECK(found[0].state == pawl::ledger::LeaseState::kUnknown);
  view.resolve(keys.session(), found[0], true, "by hand");
  const auto next = keys.acquire(lease("b", 2));
  CHECK(next.how == How::kDone);
  CHECK(next.response == "by hand");
}

TEST_CASE("what an operator has said no attempt of before can change") {
  Keys keys;
  (void)keys.acquire(lease("a", 1));
  keys.expire();
  keys.execute("SELECT pawl.resolve_lease(1, 'k', true, 'said')");
  CHECK_FALSE(keys.give_back(lease("a", 1), GivenBack::kUnknown));
  CHECK(keys.record(lease("a", 1), "late") == "PW015");
  const auto next = keys.acquire(lease("b", 2));
  CHECK(next.how == How::kDone);
  CHECK(next.response == "said");
  // What comes behind it is no operator's word.
  CHECK(keys.give_back(lease("b", 2), GivenBack::kNotDone));
  (void)keys.acquire(lease("c", 3));
  CHECK(keys.value("SELECT resolved_by IS NULL AND resolved_at IS NULL FROM pawl.leases") == "t");
}

TEST_CASE("whoever takes over is told how long ago the last attempt began") {
  Keys keys;
  CHECK_FALSE(keys.acquire(lease("a", 1)).last_ago.has_value());
  keys.execute("UPDATE pawl.leases SET started_at = now() - interval '1 hour'");
  keys.expire();
  (void)keys.acquire(lease("b", 2));
  keys.expire();
  const auto next = keys.acquire(lease("c", 3));
  // The first one is unknown, and an hour old; the last one is not.
  REQUIRE(next.unknown_for.has_value());
  CHECK(*next.unknown_for >= 1h);
  REQUIRE(next.last_ago.has_value());
  CHECK(*next.last_ago < 1h);
}
