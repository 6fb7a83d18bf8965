// What the scripts of framework/leases/redis answer, on a real Redis.
#include "leases/store/redis_lease_scripts.hpp"

#include <atomic>
#include <thread>

#include "acl_user.hpp"
#include "errors.hpp"
#include "message/digest.hpp"
#include "prelude.hpp"
#include "redis/pool.hpp"
#include "redis_server.hpp"

namespace {

using pawl::ledger::Extended;
using pawl::ledger::GivenBack;
using pawl::ledger::KeyLease;
using pawl::ledger::RedisLeaseAnswer;
using pawl::ledger::RedisLeaseRequest;
using pawl::ledger::RedisLeaseScripts;
using pawl::ledger::ScopeId;
using pawl::redis::Connection;
using How = RedisLeaseAnswer::How;

constexpr auto kTime = 30s;
constexpr auto kHistory = 1h;

KeyLease lease(const std::string& owner, std::int64_t token) {
  return {{ScopeId{1}, "s"}, "k", owner, token};
}

/// One key, "k", and processes that ask for it.
class Key {
 public:
  explicit Key(RedisServer& server = RedisServer::shared())
      : server_(server), connection_(server.settings(), server.address()) {}

  RedisLeaseAnswer acquire(const KeyLease& lease, std::int64_t payload = 1, bool any = false,
                           bool force = false) {
    RedisLeaseRequest request;
    request.lease = lease;
    request.payload_hash = payload;
    request.message = "payments[0]@" + std::to_string(payload);
    request.time = kTime;
    request.any_payload = any;
    request.force = force;
    return leases_.acquire(connection_, request, kHistory);
  }
  bool give_back(const KeyLease& lease, GivenBack how, bool settled = false) {
    return leases_.give_back(connection_, lease, how, settled, kHistory);
  }
  bool complete(const KeyLease& lease) { return leases_.complete(connection_, lease, kHistory); }
  bool fail(const KeyLease& lease) { return leases_.fail(connection_, lease, kHistory); }
  Extended extend(const KeyLease& lease) {
    return leases_.extend(connection_, {lease}, kTime).at(0);
  }

  /// The lease ends by itself.
  void expire() {
    server_.ask({"PEXPIRE", holder(), "1"});
    wait_until([&] { return server_.text({"EXISTS", holder()}) == "0"; }, 20s, "the lease's end");
  }
  [[nodiscard]] std::string holder() const { return leases_.holder_name(ScopeId{1}, "k"); }
  [[nodiscard]] std::string history() const { return leases_.history_name(ScopeId{1}, "k"); }
  std::string field(const std::string& name) { return server_.text({"HGET", history(), name}); }
  std::string state() { return field("state"); }
  bool is_held() { return server_.text({"EXISTS", holder()}) == "1"; }
  std::chrono::milliseconds ttl(const std::string& key) {
    return std::chrono::milliseconds(server_.ask({"PTTL", key}).integer);
  }

  RedisServer& server() { return server_; }
  Connection& connection() { return connection_; }
  const RedisLeaseScripts& leases() { return leases_; }

 private:
  RedisServer& server_;
  RedisLeaseScripts leases_{"pawl:", "7"};
  Connection connection_;
};

}  // namespace

TEST_CASE(
    "Redis: of those that ask for a key one has it, until it gives it back or its time is over") {
  Key key;
  const auto one = key.acquire(lease("a", 1));
  CHECK(one.how == How::kMine);
  CHECK(one.attempt == 1);
  CHECK_FALSE(one.unknown_for.has_value());
  // Its answer was lost: asked for again.
  const auto again = key.acquire(lease("a", 1));
  CHECK(again.how == How::kMine);
  CHECK(again.attempt == 1);
  CHECK_FALSE(again.unknown_for.has_value());
  const auto other = key.acquire(lease("b", 2));
  CHECK(other.how == How::kPending);
  CHECK(other.holder == "a");
  CHECK(other.wait > 20s);
  CHECK(other.wait <= kTime);
  // Of the same process, for another message.
  CHECK(key.acquire(lease("a", 3)).how == How::kPending);
  key.expire();
  const auto next = key.acquire(lease("b", 4));
  CHECK(next.how == How::kMine);
  CHECK(next.attempt == 2);
  CHECK(next.unknown_for.has_value());
  const auto next_again = key.acquire(lease("b", 4));
  CHECK(next_again.attempt == 2);
  CHECK(next_again.unknown_for.has_value());
  CHECK_FALSE(key.complete(lease("a", 1)));
  CHECK_FALSE(key.complete(lease("b", 1)));
  CHECK(key.complete(lease("b", 4)));
  CHECK(key.acquire(lease("a", 5)).how == How::kCompleted);
  CHECK_FALSE(key.is_held());
}

TEST_CASE("Redis: an attempt is known by its process until it is given back or complete") {
  Key key;
  const auto attempted_by = [&] {
    return key.leases().attempted_by(key.connection(), ScopeId{1}, "k");
  };
  CHECK_FALSE(attempted_by());
  REQUIRE(key.acquire(lease("a", 1)).how == How::kMine);
  CHECK(attempted_by() == "a");
  key.expire();
  CHECK(attempted_by() == "a");
  REQUIRE(key.acquire(lease("b", 2)).how == How::kMine);
  CHECK(attempted_by() == "b");
  REQUIRE(key.give_back(lease("b", 2), GivenBack::kUnknown));
  CHECK_FALSE(attempted_by());
  REQUIRE(key.acquire(lease("c", 3)).how == How::kMine);
  REQUIRE(key.complete(lease("c", 3)));
  CHECK_FALSE(attempted_by());
}

TEST_CASE("Redis: what is unknown counts from the first such attempt on") {
  Key key;
  (void)key.acquire(lease("a", 1));
  (void)key.server().ask({"HINCRBY", key.history(), "begun", "-60000"});
  key.expire();
  CHECK(key.acquire(lease("b", 2)).unknown_for >= 60s);
  key.expire();
  const auto third = key.acquire(lease("c", 3));
  CHECK(third.attempt == 3);
  CHECK(third.unknown_for >= 60s);
  CHECK(third.unknown_for < 90s);
}

TEST_CASE("Redis: a lease that ended by itself is its attempt's until another takes it") {
  Key key;
  (void)key.acquire(lease("a", 1));
  key.expire();
  SECTION("acquired again") {
    const auto again = key.acquire(lease("a", 1));
    CHECK(again.how == How::kMine);
    CHECK(again.attempt == 1);
    CHECK_FALSE(again.unknown_for.has_value());
    CHECK(key.acquire(lease("b", 2)).how == How::kPending);
  }
  SECTION("completed") {
    CHECK(key.complete(lease("a", 1)));
    CHECK(key.state() == "COMPLETED");
  }
  SECTION("given back") {
    CHECK(key.give_back(lease("a", 1), GivenBack::kNotDone));
    CHECK_FALSE(key.acquire(lease("b", 2)).unknown_for.has_value());
  }
  SECTION("extended: no, it is told to end") {
    CHECK(key.extend(lease("a", 1)) == Extended::kLost);
    CHECK_FALSE(key.is_held());
  }
}

TEST_CASE("Redis: who has lost a lease changes nothing of its successor's") {
  Key key;
  (void)key.acquire(lease("a", 1));
  key.expire();
  (void)key.acquire(lease("b", 2));
  const auto late = GENERATE(lease("a", 1), lease("b", 1), lease("a", 2));
  CAPTURE(late.owner, late.token);
  CHECK(key.acquire(late).how == How::kPending);
  CHECK(key.extend(late) == Extended::kLost);
  CHECK_FALSE(key.give_back(late, GivenBack::kNotDone, true));
  CHECK_FALSE(key.complete(late));
  CHECK_FALSE(key.fail(late));
  CHECK(key.state() == "PROCESSING");
  CHECK(key.field("owner") == "b");
  CHECK(key.server().text({"HGET", key.holder(), "token"}) == "2");
  CHECK_FALSE(key.field("unknown_since").empty());
  // Nor once that one has ended too.
  CHECK(key.give_back(lease("b", 2), GivenBack::kNotDone));
  CHECK_FALSE(key.complete(late));
  CHECK_FALSE(key.give_back(late, GivenBack::kUnknown));
  CHECK(key.state() == "RELEASED");
}

TEST_CASE("Redis: what is given back says what is known, and may be given back again") {
  struct Row {
    GivenBack how;
    bool settled;
    std::uint32_t attempt;
    bool unknown;
  };
  // Behind an attempt that is unknown.
  const auto row =
      GENERATE(Row{GivenBack::kNotBegun, false, 2, true}, Row{GivenBack::kNotBegun, true, 2, false},
               Row{GivenBack::kNotDone, false, 3, true}, Row{GivenBack::kNotDone, true, 3, false},
               Row{GivenBack::kUnknown, false, 3, true}, Row{GivenBack::kUnknown, true, 3, true},
               // Its response is not kept here.
               Row{GivenBack::kDone, false, 3, true}, Row{GivenBack::kDone, true, 3, true});
  CAPTURE(static_cast<int>(row.how), row.settled);
  Key key;
  (void)key.acquire(lease("a", 1));
  (void)key.server().ask({"HINCRBY", key.history(), "begun", "-60000"});
  key.expire();
  (void)key.acquire(lease("b", 2));
  CHECK(key.give_back(lease("b", 2), row.how, row.settled));
  CHECK(key.give_back(lease("b", 2), row.how, row.settled));
  CHECK_FALSE(key.is_held());
  CHECK(key.state() == "RELEASED");
  const auto next = key.acquire(lease("c", 3));
  CHECK(next.how == How::kMine);
  CHECK(next.attempt == row.attempt);
  REQUIRE(next.unknown_for.has_value() == row.unknown);
  // What is settled is known of the attempts before this one.
  if (row.unknown)
    CHECK((next.unknown_for >= 60s) == !row.settled);
}

TEST_CASE("Redis: what was left is given back once it is there") {
  Key key;
  const auto give_back_left = [&](const KeyLease& left) {
    return key.leases().give_back_left(key.connection(), {left, GivenBack::kNotBegun}, kHistory);
  };
  // Its request comes late.
  CHECK_FALSE(give_back_left(lease("a", 1)));
  REQUIRE(key.acquire(lease("a", 1)).how == How::kMine);
  CHECK_FALSE(give_back_left(lease("a", 2)));
  REQUIRE(key.acquire(lease("a", 2)).how == How::kPending);
  CHECK(give_back_left(lease("a", 1)));
  const auto next = key.acquire(lease("a", 2));
  CHECK(next.how == How::kMine);
  CHECK(next.attempt == 1);
  CHECK_FALSE(next.unknown_for);
}

TEST_CASE("Redis: an unknown attempt for another payload is a conflict") {
  Key key;
  (void)key.acquire(lease("a", 1), 17);
  SECTION("not while nothing is unknown") {
    CHECK(key.give_back(lease("a", 1), GivenBack::kNotDone));
    CHECK(key.acquire(lease("b", 2), 18).how == How::kMine);
  }
  SECTION("where its lease ended without a word, or it was given back so") {
    if (GENERATE(true, false)) {
      key.expire();
    } else {
      CHECK(key.give_back(lease("a", 1), GivenBack::kUnknown));
    }
    const auto answer = key.acquire(lease("b", 2), 18);
    CHECK(answer.how == How::kConflict);
    CHECK(answer.holder == "payments[0]@17");
    CHECK_FALSE(key.is_held());
    CHECK(key.field("owner") == "a");
    CHECK(key.acquire(lease("b", 3), 17).how == How::kMine);
  }
  SECTION("unless any payload will do") {
    key.expire();
    CHECK(key.acquire(lease("b", 2), 18, true).unknown_for.has_value());
    CHECK(key.field("payload") == "18");
  }
}

TEST_CASE("Redis: COMPLETED holds until PostgreSQL says otherwise; then that attempt is unknown") {
  Key key;
  (void)key.acquire(lease("a", 1));
  CHECK(key.complete(lease("a", 1)));
  CHECK(key.complete(lease("a", 1)));
  CHECK(key.state() == "COMPLETED");
  CHECK(key.acquire(lease("b", 2)).how == How::kCompleted);
  CHECK_FALSE(key.is_held());
  CHECK(key.acquire(lease("b", 2), 2, false, true).how == How::kConflict);
  const auto forced = key.acquire(lease("b", 2), 1, false, true);
  CHECK(forced.how == How::kMine);
  CHECK(forced.attempt == 2);
  CHECK(forced.unknown_for.has_value());
  CHECK(key.acquire(lease("c", 3), 1, false, true).how == How::kPending);
}

TEST_CASE(
    "Redis: what is completed settles what was unknown, and is neither given back nor failed") {
  Key key;
  (void)key.acquire(lease("a", 1));
  key.expire();
  (void)key.acquire(lease("b", 2));
  CHECK(key.complete(lease("b", 2)));
  CHECK(key.field("unknown_since").empty());
  CHECK_FALSE(key.give_back(lease("b", 2), GivenBack::kUnknown));
  CHECK_FALSE(key.fail(lease("b", 2)));
  CHECK(key.state() == "COMPLETED");
}

TEST_CASE("Redis: a dead letter's key keeps what is known, for when it is replayed") {
  Key key;
  (void)key.acquire(lease("a", 1));
  SECTION("given back before") {
    CHECK(key.give_back(lease("a", 1), GivenBack::kNotDone));
    CHECK(key.fail(lease("a", 1)));
    CHECK(key.fail(lease("a", 1)));
    CHECK(key.state() == "FAILED");
    const auto replayed = key.acquire(lease("b", 2), 2);
    CHECK(replayed.how == How::kMine);
    CHECK(replayed.attempt == 2);
    CHECK_FALSE(replayed.unknown_for.has_value());
  }
  SECTION("not given back, so unknown") {
    CHECK(key.fail(lease("a", 1)));
    CHECK(key.fail(lease("a", 1)));
    CHECK_FALSE(key.is_held());
    CHECK(key.acquire(lease("b", 2), 2).how == How::kConflict);
    CHECK(key.acquire(lease("b", 2)).unknown_for.has_value());
  }
}

TEST_CASE("Redis: the holder lives as long as the lease, the history as long as keys are kept") {
  Key key;
  (void)key.acquire(lease("a", 1));
  CHECK(key.ttl(key.holder()) <= kTime);
  CHECK(key.ttl(key.holder()) > kTime / 2);
  CHECK(key.ttl(key.history()) > kHistory / 2);
  (void)key.server().ask({"PEXPIRE", key.holder(), "1000000"});
  CHECK(key.extend(lease("a", 1)) == Extended::kExtended);
  CHECK(key.ttl(key.holder()) <= kTime);
  CHECK(key.ttl(key.history()) > kHistory / 2);
  // A call that takes longer than that.
  (void)key.server().ask({"PEXPIRE", key.history(), "30000"});
  CHECK(key.extend(lease("a", 1)) == Extended::kExtended);
  CHECK(key.ttl(key.history()) > kTime);
  CHECK(key.complete(lease("a", 1)));
  CHECK(key.ttl(key.history()) > kHistory / 2);

  // For ever.
  RedisLeaseRequest request;
  request.lease = lease("b", 2);
  request.payload_hash = 1;
  request.time = kTime;
  request.force = true;
  CHECK(key.leases().acquire(key.connection(), request, 0ms).how == How::kMine);
  CHECK(key.ttl(key.history()) == -1ms);
  CHECK(key.extend(lease("b", 2)) == Extended::kExtended);
  CHECK(key.ttl(key.history()) == -1ms);
  // Shorter than a lease: that is no reason to forget an attempt in hand.
  request.lease = lease("c", 3);
  CHECK(key.leases().give_back(key.connection(), lease("b", 2), GivenBack::kUnknown, false, 0ms));
  CHECK(key.ttl(key.history()) == -1ms);
  CHECK(key.leases().acquire(key.connection(), request, 1s).how == How::kMine);
  CHECK(key.ttl(key.history()) > kTime);
}

TEST_CASE("Redis: many leases are extended together, each by itself") {
  Key key;
  std::vector<KeyLease> leases;
  for (int i = 0; i < 300; ++i) {
    leases.push_back({{ScopeId{1}, "s"}, "many " + std::to_string(i), "a", i});
    RedisLeaseRequest request;
    request.lease = leases.back();
    request.time = kTime;
    if (i % 3 != 0)
      REQUIRE(key.leases().acquire(key.connection(), request, kHistory).how == How::kMine);
  }
  (void)key.server().ask({"SCRIPT", "FLUSH"});
  const auto extended = key.leases().extend(key.connection(), leases, kTime);
  REQUIRE(extended.size() == leases.size());
  for (std::size_t i = 0; i < extended.size(); ++i)
    CHECK(extended[i] == (i % 3 != 0 ? Extended::kExtended : Extended::kLost));
  CHECK(key.leases().extend(key.connection(), {}, kTime).empty());
}

TEST_CASE("Redis: of many that ask at once one has it") {
  Key key;
  pawl::redis::Pool pool(key.server().settings());
  std::atomic<int> in_hand{0};
  std::atomic<int> overlaps{0};
  std::atomic<int> attempts{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&, i] {
      for (int round = 0; round < 100; ++round) {
        const auto connection = pool.borrow();
        RedisLeaseRequest request;
        request.lease = lease("process " + std::to_string(i), round);
        request.time = kTime;
        if (key.leases().acquire(*connection, request, kHistory).how != How::kMine)
          continue;
        ++attempts;
        if (++in_hand != 1)
          ++overlaps;
        --in_hand;
        (void)key.leases().give_back(*connection, request.lease, GivenBack::kNotDone, false,
                                     kHistory);
      }
    });
  }
  for (auto& thread : threads)
    thread.join();
  CHECK(overlaps == 0);
  CHECK(attempts > 0);
  CHECK(key.field("attempts") == std::to_string(attempts));
  CHECK(key.field("unknown_since").empty());
}

TEST_CASE("Redis: with its memory full no lease is given, and those that there are go on and end") {
  RedisServer server;
  Key key(server);
  (void)key.acquire(lease("a", 1));
  (void)server.ask({"CONFIG", "SET", "maxmemory", "1"});
  const KeyLease other{{ScopeId{1}, "s"}, "another key", "b", 2};
  const auto refused = redis_error([&] { return key.acquire(other); });
  REQUIRE(refused.has_value());
  CHECK(refused->code() == "OOM");
  CHECK_THAT(refused->what(), ContainsSubstring("rejected acquire"));
  CHECK(server.text({"KEYS", "*" + key.leases().holder_name(ScopeId{1}, "another key")}).empty());
  CHECK(server.text({"DBSIZE"}) == "2");
  CHECK(key.connection().alive());
  // Who has it is told so again, and whoever else asks as well.
  CHECK(key.acquire(lease("a", 1)).how == How::kMine);
  CHECK(key.acquire(lease("b", 3)).how == How::kPending);
  CHECK(key.extend(lease("a", 1)) == Extended::kExtended);
  SECTION("completed") {
    CHECK(key.complete(lease("a", 1)));
    CHECK(key.state() == "COMPLETED");
    CHECK(key.acquire(lease("b", 3)).how == How::kCompleted);
  }
  SECTION("given back") {
    CHECK(key.give_back(lease("a", 1), GivenBack::kUnknown));
    CHECK(key.state() == "RELEASED");
    CHECK_FALSE(key.field("unknown_since").empty());
  }
  SECTION("failed") {
    CHECK(key.fail(lease("a", 1)));
    CHECK(key.state() == "FAILED");
  }
  SECTION("ended by itself") {
    key.expire();
    CHECK(redis_error([&] { return key.acquire(lease("b", 3)); })->code() == "OOM");
    CHECK(redis_error([&] { return key.acquire(lease("a", 1)); })->code() == "OOM");
    (void)server.ask({"CONFIG", "SET", "maxmemory", "0"});
    CHECK(key.acquire(lease("b", 3)).unknown_for.has_value());
  }
}

TEST_CASE("Redis: what it forgets is lost, and nothing else") {
  Key key;
  (void)key.acquire(lease("a", 1));
  (void)key.server().ask({"FLUSHALL"});
  SECTION("the holder is told") {
    CHECK(key.extend(lease("a", 1)) == Extended::kLost);
    CHECK_FALSE(key.complete(lease("a", 1)));
    // Nobody else has it.
    CHECK(key.give_back(lease("a", 1), GivenBack::kUnknown));
    CHECK_FALSE(key.fail(lease("a", 1)));
    CHECK(key.server().text({"DBSIZE"}) == "0");
  }
  SECTION("the next one is the first") {
    CHECK(key.acquire(lease("b", 2)).attempt == 1);
    CHECK(key.extend(lease("a", 1)) == Extended::kLost);
  }
}

TEST_CASE("Redis: a history that somebody deleted is begun anew with the lease at hand") {
  Key key;
  (void)key.acquire(lease("a", 1));
  (void)key.server().ask({"DEL", key.history()});
  CHECK(key.extend(lease("a", 1)) == Extended::kExtended);
  CHECK(key.acquire(lease("a", 1)).attempt == 1);
  CHECK(key.acquire(lease("b", 2)).how == How::kPending);
}

TEST_CASE(
    "Redis: keys are named as docs/external-calls-redis.md says, and hold no idempotency key") {
  Key key;
  const std::string secret = "card 4711 {with} braces\n";
  RedisLeaseRequest request;
  request.lease = {{ScopeId{12}, "s"}, secret, "a", 1};
  request.time = kTime;
  CHECK(key.leases().acquire(key.connection(), request, kHistory).how == How::kMine);
  const auto common = "pawl:{7:12:" + pawl::message::sha256_hex(secret) + "}";
  CHECK(key.leases().holder_name(ScopeId{12}, secret) == common + ":holder");
  CHECK(key.server().text({"EXISTS", common + ":holder", common + ":history"}) == "2");
  CHECK(key.server().text({"DBSIZE"}) == "2");
  CHECK(key.leases().history_name(ScopeId{1}, secret) != common + ":history");
}

TEST_CASE(
    "Redis: the user of docs/external-calls-redis.md may run every script, on pawl's keys alone") {
  RedisServer server;
  REQUIRE(server.text(documented_user()) == "OK");
  auto settings = server.settings();
  settings.credentials = {"pawl", "secret"};
  Connection connection(settings, server.address());
  const RedisLeaseScripts leases("pawl:", "7");
  RedisLeaseRequest request;
  request.lease = lease("a", 1);
  request.time = kTime;
  const auto acquire = [&](std::int64_t token, std::chrono::milliseconds history) {
    request.lease.token = token;
    request.force = true;
    return leases.acquire(connection, request, history).how;
  };
  CHECK(acquire(1, kHistory) == How::kMine);
  CHECK(acquire(2, kHistory) == How::kPending);
  CHECK(leases.extend(connection, {lease("a", 1)}, kTime).at(0) == Extended::kExtended);
  CHECK(leases.give_back(connection, lease("a", 1), GivenBack::kNotDone, true, kHistory));
  CHECK(acquire(3, 0ms) == How::kMine);
  CHECK(leases.give_back(connection, lease("a", 3), GivenBack::kUnknown, false, 0ms));
  CHECK(acquire(4, 1s) == How::kMine);
  CHECK(leases.extend(connection, {lease("a", 4)}, kTime).at(0) == Extended::kExtended);
  CHECK(leases.complete(connection, lease("a", 4), kHistory));
  CHECK(acquire(5, kHistory) == How::kMine);
  CHECK(leases.fail(connection, lease("a", 5), 0ms));
  const RedisLeaseScripts elsewhere("other:", "7");
  const auto error = redis_error([&] { return elsewhere.acquire(connection, request, kHistory); });
  REQUIRE(error.has_value());
  CHECK(error->code() == "NOPERM");
}
