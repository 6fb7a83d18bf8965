// What a frame makes of the server's answers, the broken, torn and unexpected ones included. What
// PostgreSQL itself does is proved in tests/engine, on the real one.
#include "postgres/frame.hpp"

#include <pqxx/except>

#include "prelude.hpp"
#include "scripted_server.hpp"

using namespace pawl::postgres;

namespace {

using Steps = std::vector<std::string>;

constexpr const char* kBegin = "BEGIN ISOLATION LEVEL READ COMMITTED";
const Statement kClaim{"", "SELECT claim"};
const Statement kEffect{"", "INSERT effect"};
const Statement kAdvance{"", "UPDATE register"};
const Statement kNextClaim{"next_claim", "SELECT next claim"};

/// A server, a session on it, and a frame of the session that has begun.
struct World {
  World() : World(SessionSettings{}) {}
  explicit World(const SessionSettings& with) : session(merged(with)) { (void)server.executed(); }

  [[nodiscard]] std::unique_ptr<Frame> begun() {
    auto frame = std::make_unique<Frame>(session, FrameSettings{});
    Request claim{&kClaim};
    (void)frame->begin(claim);
    (void)server.executed();
    return frame;
  }
  std::optional<Ticket> finish(Frame& frame, const FinishHooks& hooks = {},
                               std::optional<NextStart> next = std::nullopt) {
    Request advance{&kAdvance};
    return frame.finish(advance, hooks, next);
  }
  /// Of the last statements that reached the server.
  [[nodiscard]] Steps executed() { return server.executed(); }

  ScriptedServer server;
  Session session;

 private:
  [[nodiscard]] SessionSettings merged(SessionSettings settings) const {
    settings.url = server.url();
    return settings;
  }
};

/// The Error that a call throws.
template <typename Call>
Error error_of(Call call) {
  try {
    call();
  } catch (const Error& error) {
    return error;
  }
  FAIL("nothing was thrown");
  throw std::logic_error("not reached");
}

}  // namespace

TEST_CASE("BEGIN travels with the first statement, and COMMIT with the last") {
  World world;
  Frame frame(world.session, {});
  Request claim{&kClaim};
  (void)frame.begin(claim);
  CHECK(world.executed() == Steps{kBegin, "SELECT claim", "Sync"});
  frame.defer(kEffect, {}, std::nullopt, "effect");
  CHECK(world.executed().empty());
  CHECK_FALSE(world.finish(frame));
  CHECK(world.executed() == Steps{"INSERT effect", "UPDATE register", "COMMIT", "Sync"});
  CHECK_FALSE(world.session.in_transaction());
}

TEST_CASE("a frame that begins later is one flight, from BEGIN to COMMIT") {
  World world;
  Frame frame(world.session, {});
  frame.begin_later(Request{&kClaim});
  CHECK(world.executed().empty());
  CHECK_FALSE(world.finish(frame));
  CHECK(world.executed() == Steps{kBegin, "SELECT claim", "UPDATE register", "COMMIT", "Sync"});
  CHECK_FALSE(world.session.in_transaction());
}

TEST_CASE("what fails in a frame that begins later is an error, and nothing is in doubt") {
  const std::string failing = GENERATE("SELECT claim", "UPDATE register");
  CAPTURE(failing);
  World world;
  world.server.script(failing, {.bytes = wire::error("23505", "no")});
  {
    Frame frame(world.session, {});
    frame.begin_later(Request{&kClaim});
    CHECK(error_of([&] { world.finish(frame); }).sqlstate() == "23505");
  }
  CHECK(world.session.alive());
  CHECK_FALSE(world.session.in_transaction());
}

TEST_CASE("where the answer to COMMIT is torn off, a frame that begins later is in doubt") {
  World world;
  world.server.cut_after("UPDATE register", 0);
  Frame frame(world.session, {});
  frame.begin_later(Request{&kClaim});
  CHECK_THROWS_AS(world.finish(frame), InDoubt);
  CHECK_FALSE(world.session.alive());
}

TEST_CASE("the hooks of a frame are called when what they wait for is on its way") {
  World world;
  const auto frame = world.begun();
  bool before = false;
  bool sent = false;
  FinishHooks hooks;
  hooks.before_commit = [&] {
    wait_until([&] { return world.server.has_executed("UPDATE register"); }, 60s, "the advance");
    before = !world.server.has_executed("COMMIT");
  };
  hooks.commit_sent = [&] {
    wait_until([&] { return world.server.has_executed("COMMIT"); }, 60s, "COMMIT");
    sent = true;
  };
  world.finish(*frame, hooks);
  CHECK(before);
  CHECK(sent);
}

TEST_CASE("wherever the answer to COMMIT is torn off, the frame is in doubt") {
  // The whole of it: from the answer to the last statement to the end of the flight.
  const std::size_t whole = [] {
    World world;
    const auto frame = world.begun();
    world.server.cut_after("UPDATE register", 100000);
    world.finish(*frame);
    return world.server.sent_behind_cut();
  }();
  REQUIRE(whole > 30);
  for (std::size_t bytes = 0; bytes < whole; ++bytes) {
    CAPTURE(bytes, whole);
    World world;
    const auto frame = world.begun();
    world.server.cut_after("UPDATE register", bytes);
    CHECK_THROWS_AS(world.finish(*frame), InDoubt);
    CHECK_FALSE(world.session.alive());
  }
  World world;
  const auto frame = world.begun();
  world.server.cut_after("UPDATE register", whole);
  CHECK_NOTHROW(world.finish(*frame));
}

TEST_CASE("a frame that is in doubt says what the server said last") {
  World world;
  world.server.script("COMMIT",
                      {.bytes = wire::fatal("57P01", "terminating connection"), .hang_up = true});
  const auto frame = world.begun();
  try {
    world.finish(*frame);
    FAIL("the frame believes that it has committed");
  } catch (const InDoubt& doubt) {
    CHECK(doubt.sqlstate() == "57P01");
    CHECK_THAT(doubt.what(), ContainsSubstring("terminating connection"));
  }
}

TEST_CASE("bytes that are no answer leave a frame in doubt") {
  const std::string garbage =
      GENERATE("\x01\x02\x03\x04\x05\x06\x07\x08"s, "HTTP/1.1 400 Bad Request\r\n\r\n"s,
               // A type that nobody knows, and a row that nothing has described.
               wire::message('~', "?"), wire::message('D', "\0\1\0\0\0\1x"s));
  World world;
  world.server.script("COMMIT", {.bytes = garbage, .hang_up = true});
  const auto frame = world.begun();
  CHECK_THROWS_AS(world.finish(*frame), InDoubt);
  CHECK_FALSE(world.session.alive());
}

TEST_CASE("a server that falls silent at COMMIT is given up, in doubt") {
  SessionSettings settings;
  settings.statement_timeout = 1ms;
  settings.answer_timeout = 50ms;
  World world(settings);
  world.server.script("COMMIT", {.silent = true});
  FrameSettings short_ones;
  short_ones.statement_timeout = 1ms;
  Frame frame(world.session, short_ones);
  Request claim{&kClaim};
  (void)frame.begin(claim);
  CHECK_THROWS_WITH(world.finish(frame), ContainsSubstring("connection lost during COMMIT") &&
                                             ContainsSubstring("has not responded for"));
  CHECK_FALSE(world.session.alive());
}

TEST_CASE("a connection that breaks before COMMIT is lost, and nothing is in doubt") {
  World world;
  const auto first = GENERATE(true, false);
  CAPTURE(first);
  Frame frame(world.session, {});
  Request claim{&kClaim};
  if (first) {
    world.server.script("SELECT claim", {.hang_up = true});
    CHECK(error_of([&] { (void)frame.begin(claim); }).failure() == FailureClass::kConnection);
  } else {
    (void)frame.begin(claim);
    world.server.script("INSERT effect", {.hang_up = true});
    frame.defer(kEffect, {}, std::nullopt, "effect");
    CHECK(error_of([&] { frame.flush(); }).failure() == FailureClass::kConnection);
  }
  CHECK_FALSE(world.session.alive());
}

TEST_CASE("a COMMIT that answers ROLLBACK has stored nothing, and says so") {
  World world;
  world.server.script("COMMIT", {.bytes = wire::complete("ROLLBACK")});
  const auto frame = world.begun();
  const auto error = error_of([&] { world.finish(*frame); });
  CHECK(error.sqlstate() == "25P02");
  CHECK_THAT(error.what(), ContainsSubstring("Nothing was stored"));
  CHECK(world.session.alive());
}

TEST_CASE("an advance that touched no row is told although the rest is stored") {
  World world;
  world.server.script("UPDATE register", {.bytes = wire::complete("UPDATE 0")});
  const auto frame = world.begun();
  CHECK(error_of([&] { world.finish(*frame); }).failure() == FailureClass::kRowMissing);
  CHECK(world.executed() == Steps{"UPDATE register", "COMMIT", "Sync"});
}

TEST_CASE("whose statement failed decides what its error means") {
  // A statement that is cancelled after statement_timeout: pawl's waited for a lock, a handler's
  // may be slow by itself.
  const auto canceled = wire::error("57014", "canceling statement due to statement timeout");
  struct Case {
    const char* failing;
    FailureClass expected;
  };
  const auto one = GENERATE(Case{"SELECT own", FailureClass::kContention},
                            Case{"INSERT effect", FailureClass::kMessage},
                            Case{"UPDATE register", FailureClass::kContention},
                            // Deferred constraints and triggers are the handler's.
                            Case{"COMMIT", FailureClass::kMessage});
  CAPTURE(one.failing);
  World world;
  world.server.script(one.failing, {.bytes = canceled});
  static const Statement own{"", "SELECT own"};
  const auto frame = world.begun();
  frame->defer_own({&own});
  frame->defer(kEffect, {}, std::nullopt, "effect");
  CHECK(error_of([&] { world.finish(*frame); }).failure() == one.expected);
  const auto executed = world.executed();
  CHECK((one.failing == "COMMIT"s || executed.back() == "Sync"));
  CHECK(std::count(executed.begin(), executed.end(), "ROLLBACK") == 1);
  CHECK(world.session.alive());
  CHECK_FALSE(world.session.in_transaction());
}

TEST_CASE("the error of a handler's statement names it apart from its text") {
  struct Case {
    std::string label;
    std::string raised;
    std::string statement;
  };
  const auto one = GENERATE(Case{"sql[1]", "no name", "sql[1]"},
                            Case{"function", "function book(bytea) does not exist", "function"},
                            Case{"response", "response is empty", "response"},
                            // What pawl.publish raises itself begins with its name.
                            Case{"pawl.publish", "pawl.publish rejects \"no topic\"", ""},
                            Case{"", "no name", ""});
  // Sent with the COMMIT, and before it where rows are counted.
  const bool counted = GENERATE(false, true);
  CAPTURE(one.label, one.raised, counted);
  World world;
  world.server.script("INSERT effect", {.bytes = wire::error("22023", one.raised, "Key (k)=(1)")});
  const auto frame = world.begun();
  frame->defer(kEffect, {}, counted ? std::optional<std::uint64_t>(1) : std::nullopt, one.label);
  const auto error = error_of([&] { world.finish(*frame); });
  CHECK(error.what() == one.raised);
  CHECK(error.statement() == one.statement);
  CHECK(error.sqlstate() == "22023");
  CHECK(error.detail() == "Key (k)=(1)");
}

TEST_CASE("what is deferred as a text of pawl::publish is called so") {
  World world;
  const std::string sql = "SELECT pawl.publish($1)";
  world.server.script(sql, {.bytes = wire::error("22023", "header a is not a text")});
  const auto frame = world.begun();
  frame->defer(sql, {});
  const auto error = error_of([&] { world.finish(*frame); });
  CHECK(error.what() == "header a is not a text"s);
  CHECK(error.statement() == "pawl.publish");
}

TEST_CASE("a claim that fails is pawl's own, and its transaction is rolled back") {
  World world;
  world.server.script("SELECT claim",
                      {.bytes = wire::error("57014", "canceling statement", "Key (k)=(1)")});
  {
    Frame frame(world.session, {});
    Request claim{&kClaim};
    const auto error = error_of([&] { (void)frame.begin(claim); });
    CHECK(error.failure() == FailureClass::kContention);
    // What may quote rows is kept apart.
    CHECK(error.what() == "canceling statement"s);
    CHECK(error.detail() == "Key (k)=(1)");
  }
  CHECK(world.executed() == Steps{kBegin, "SELECT claim", "Sync", "ROLLBACK", "Sync"});
}

TEST_CASE("COMMIT is not sent while a number of rows is not what was demanded") {
  World world;
  const auto frame = world.begun();
  world.server.script("INSERT effect", {.bytes = wire::complete("INSERT 0 2")});
  frame->defer(kEffect, {}, 1, "statements[1]");
  std::optional<UnexpectedRows> error;
  try {
    world.finish(*frame);
  } catch (const UnexpectedRows& thrown) {
    error = thrown;
  }
  REQUIRE(error);
  CHECK(error->statement() == "statements[1]");
  CHECK(error->what() ==
        "the statement affected 2 rows; expect_rows requires 1. Nothing was stored"s);
  CHECK_FALSE(world.server.has_executed("COMMIT"));
  CHECK_FALSE(world.server.has_executed("UPDATE register"));
}

TEST_CASE("what pawl does behind the handler's statements waits until their rows are counted") {
  static const Statement own{"", "SELECT own"};
  const bool fits = GENERATE(true, false);
  CAPTURE(fits);
  World world;
  const auto frame = world.begun();
  world.server.script("INSERT effect",
                      {.bytes = wire::complete(fits ? "INSERT 0 1" : "INSERT 0 2")});
  frame->defer(kEffect, {}, 1, "effect");
  frame->defer_own({&own});
  if (fits) {
    CHECK_FALSE(world.finish(*frame));
    CHECK(world.executed() ==
          Steps{"INSERT effect", "Sync", "SELECT own", "UPDATE register", "COMMIT", "Sync"});
  } else {
    CHECK_THROWS_AS(world.finish(*frame), UnexpectedRows);
    CHECK_FALSE(world.server.has_executed("SELECT own"));
  }
}

TEST_CASE("what a server says in between is no answer") {
  World world;
  const auto frame = world.begun();
  const auto aside = wire::notice("something is about to wrap around") +
                     wire::message('S', "TimeZone\0UTC\0"s) +
                     wire::message('A', "\0\0\0\1channel\0payload\0"s);
  world.server.script("UPDATE register", {.bytes = aside + wire::complete("UPDATE 1") + aside});
  world.server.script("COMMIT", {.bytes = aside + wire::complete("COMMIT") + aside});
  CHECK_NOTHROW(world.finish(*frame));
  CHECK(world.session.alive());
}

TEST_CASE("a handler's own commit() is refused, and nothing of it reaches the server") {
  World world;
  auto frame = world.begun();
  CHECK_THROWS_AS(frame->commit(), pqxx::usage_error);
  CHECK(world.executed().empty());
  // libpqxx holds the transaction for ended; on the server it is open.
  frame.reset();
  CHECK(world.executed() == Steps{"ROLLBACK", "Sync"});
}

TEST_CASE("what fails behind COMMIT is the next frame's to say") {
  World world;
  Parameters none;
  Request next_claim{&kNextClaim};
  // What travels ahead is prepared before.
  world.session.exec(kNextClaim, none);
  world.session.exec(begin_statement(Isolation::kReadCommitted), none);
  world.session.exec({"", "ROLLBACK"}, none);
  const bool fails = GENERATE(true, false);
  CAPTURE(fails);
  const auto frame = world.begun();
  if (fails)
    world.server.script("SELECT next claim",
                        {.bytes = wire::error("40001", "could not serialize")});
  const auto ticket = world.finish(*frame, {}, NextStart{next_claim, {}});
  CHECK(world.executed() ==
        Steps{"UPDATE register", "COMMIT", kBegin, "SELECT next claim", "Sync"});
  REQUIRE(ticket);
  auto answer = world.session.go_on(*ticket);
  REQUIRE(answer);
  Frame next(world.session, {});
  if (fails) {
    CHECK(error_of([&] { (void)next.proceed(std::move(*answer)); }).failure() ==
          FailureClass::kContention);
  } else {
    CHECK_NOTHROW(next.proceed(std::move(*answer)));
  }
}

TEST_CASE("what was begun behind a COMMIT that did not commit is rolled back") {
  World world;
  Parameters none;
  Request next_claim{&kNextClaim};
  world.session.exec(kNextClaim, none);
  world.session.exec(begin_statement(Isolation::kReadCommitted), none);
  world.session.exec({"", "ROLLBACK"}, none);
  const auto frame = world.begun();
  world.server.script("COMMIT", {.bytes = wire::complete("ROLLBACK")});
  CHECK(error_of([&] { (void)world.finish(*frame, {}, NextStart{next_claim, {}}); }).sqlstate() ==
        "25P02");
  CHECK(world.executed() == Steps{"UPDATE register", "COMMIT", kBegin, "SELECT next claim", "Sync",
                                  "ROLLBACK", "Sync"});
  CHECK_FALSE(world.session.in_transaction());
}
